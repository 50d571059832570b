// The overview: members with their times and counts, and which participant waits for which.

class Overview {
  constructor(place) {
    this.counted = new Map();
    const body = make("div", {class: "columns"});
    place.append(body);
    this.shown = runs.map(run => new MembersShown(run, body));
    listeners.push(() => { if (place.offsetParent !== null) for (const each of this.shown) each.draw(this.counts(each.run)); });
  }

  // How much each member has sent, received and lost until a moment; kept as long as nothing new has come.
  counts(run) {
    const known = this.counted.get(run);
    if (known && known.version === run.version && known.now === look.now) return known.counts;
    const counts = run.members.map(() => ({sent: 0, received: 0, lost: 0, last: 0})), until = look.follow && (run.facts.live || !look.now) ? Infinity : look.now;  // All there is, before a moment was chosen.
    for (const {who, at} of run.notes) { if (at > until) break; counts[who].last = Math.max(counts[who].last, at); }
    counts.reasons = until === Infinity ? run.losses : run.reasons.map(reason => [reason, 0]);
    if (run.columns) {
      const {sent, arrival, sender, receiver, number, lost} = run.columns;
      const stop = until === Infinity ? run.count : run.rowAt(until + 1);
      for (let row = 0; row < stop; row++) {
        const from = counts[sender[row]];
        if (row === 0 || number[row] !== number[row - 1] || sender[row] !== sender[row - 1] || sent[row] !== sent[row - 1]) from.sent++;
        from.last = Math.max(from.last, sent[row]);
        if (receiver[row] < 0) continue;
        const to = counts[receiver[row]];
        if (lost[row] >= 0) { to.lost++; if (until < Infinity) counts.reasons[lost[row]][1]++; } else if (arrival[row] <= until) { to.received++; to.last = Math.max(to.last, arrival[row]); }
      }
    }
    this.counted.set(run, {version: run.version, now: look.now, counts});
    return counts;
  }
}

const grouped = new Intl.NumberFormat("en"), fine = value => value ? grouped.format(value) : "";

// A table of texts, of which only the cells that differ are changed: a run has many members, and most rest between two looks.
class Table {
  constructor(place, kind, kinds) {  // The classes of the table, and of each column's cells.
    this.kinds = kinds; this.rows = []; this.element = make("table", {class: kind, hidden: true});
    place.append(this.element);
  }

  // Show rows of a class and its texts; the first is the heading.
  show(rows) {
    this.element.hidden = !rows.length;
    while (this.rows.length > rows.length) this.rows.pop().element.remove();
    rows.forEach(([kind, ...texts], place) => {
      const row = this.rows[place] ??= this.added(place ? "td" : "th");
      if (row.kind !== kind) row.element.className = row.kind = kind;
      texts.forEach((text, column) => { if (row.texts[column] !== text) row.cells[column].textContent = row.texts[column] = text; });
    });
  }

  added(tag) {
    const cells = this.kinds.map(kind => make(tag, {class: kind})), element = make("tr", {}, ...cells);
    this.element.append(element);
    return {element, cells, texts: cells.map(() => ""), kind: ""};
  }
}

// What the overview shows of one run.
class MembersShown {
  constructor(run, place) {
    this.run = run; this.order = []; this.drawn = []; this.whys = "";
    this.members = new Table(place, "members", [null, null, "number", "number", "number", "number", null]);
    this.losses = new Table(place, null, [null, "number"]);
    this.waits = make("ul", {class: "why", hidden: true});
    place.append(this.waits);
  }

  draw(counts) {
    const {run} = this, now = [counts, run.status, run.members.length];
    if (now.every((each, place) => each === this.drawn[place])) return;
    this.drawn = now;
    const standings = new Map((run.status.standings || []).map(each => [each.name, each]));
    const waits = run.status.waits || [], holders = new Set(waits.map(wait => wait.holder));
    if (this.order.length !== run.members.length) this.order = natural(run.members);
    this.members.show([
      ["", runs.length > 1 ? run.facts.file : "", standings.size ? "state" : "", "time", "sent", "received", "not received", ""],
      ...this.order.filter(member => run.members[member] || counts[member].sent).slice(0, 1000).map(member => {
        const name = run.members[member], {sent, received, lost, last} = counts[member], standing = standings.get(name);
        return [holders.has(name) ? "holder" : "", name || "(outside)", standing?.state ?? "", timeText(standing?.now ?? last), fine(sent), fine(received), fine(lost), standing?.remark ?? ""];
      }),
    ]);
    const losses = counts.reasons.filter(([, count]) => count);
    this.losses.show(losses.length ? [["", "not received because", "messages"], ...losses.map(([reason, count]) => ["", reason, fine(count)])] : []);
    const whys = waits.slice(0, 20).map(wait => wait.why);
    if (whys.join("\n") === this.whys) return;
    this.whys = whys.join("\n");
    this.waits.hidden = !whys.length;
    this.waits.replaceChildren(...whys.map(why => make("li", {}, why)));
  }
}

// Which participant waits for which: a ring of participants, with the links between them.
class Waits {
  constructor(place) {
    this.place = place; this.shown = "";
    this.body = make("div");
    place.append(this.body);
    listeners.push(() => { if (place.offsetParent !== null) this.draw(); });
  }

  draw() {
    const run = runs[0], waits = run.status.waits || [], links = run.status.links || [];
    const names = run.status.standings ? run.status.standings.map(each => each.name) : run.members.filter(Boolean);
    const state = JSON.stringify([names, waits, links.length, theme.ink, run.looks, run.status.hints]);
    if (state === this.shown) return;
    this.shown = state;
    this.body.textContent = "";
    if (names.length > 60) { this.body.append(this.list(waits)); return; }
    const size = 460, radius = names.length > 1 ? 165 : 0, svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    svg.id = "graph"; svg.setAttribute("viewBox", `0 0 ${size + 240} ${size}`);
    const at = new Map(names.map((name, place) => { const angle = 2 * Math.PI * place / names.length - Math.PI / 2; return [name, [size / 2 + 120 + radius * Math.cos(angle), size / 2 + radius * Math.sin(angle)]]; }));
    const add = (tag, attributes, text) => { const each = document.createElementNS("http://www.w3.org/2000/svg", tag); for (const [name, value] of Object.entries(attributes)) each.setAttribute(name, value); if (text) each.textContent = text; svg.append(each); return each; };
    const holders = new Set(waits.map(wait => wait.holder));
    for (const [sender, receiver, topic, latency] of links) if (at.has(sender) && at.has(receiver)) {
      const [[a, b], [c, d]] = [at.get(sender), at.get(receiver)];
      const line = add("path", {class: "edge", d: bow(a, b, c, d), "stroke-width": 1.5});
      line.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), {textContent: `${sender} → ${receiver}: ${topic ?? "control"}, at least ${timeText(latency)}`}));
    }
    for (const wait of waits) if (at.has(wait.who) && at.has(wait.holder)) {
      const [[a, b], [c, d]] = [at.get(wait.who), at.get(wait.holder)];
      const line = add("path", {class: "edge waits", d: bow(a, b, c, d)});
      line.append(Object.assign(document.createElementNS("http://www.w3.org/2000/svg", "title"), {textContent: wait.why}));
    }
    for (const [name, [x, y]] of at) {
      add("circle", {class: holders.has(name) ? "node holder" : "node", cx: x, cy: y, r: 13});
      const right = x > size / 2 + 121, middle = Math.abs(x - size / 2 - 120) < 2;
      add("text", {x: middle ? x : x + (right ? 19 : -19), y: middle ? y + (y < size / 2 ? -20 : 32) : y + 5, "text-anchor": middle ? "middle" : right ? "start" : "end", "font-size": 15}, name);
    }
    this.body.append(make("div", {class: "columns"}, svg, this.list(waits)));
  }

  list(waits) {
    const run = runs[0], held = [...run.held].sort((a, b) => b[1] - a[1]).slice(0, 10);
    return make("div", {},
      waits.length ? make("ul", {class: "why"}, ...waits.slice(0, 60).map(wait => make("li", {}, wait.why))) : make("p", {class: "why"}, "no participant waits for another"),
      ...(held.length ? [make("table", {}, make("tr", {}, make("th", {}, "holds others"), make("th", {}, "of the time looked at")),
        ...held.map(([name, count]) => make("tr", {}, make("td", {}, name), make("td", {class: "number"}, `${Math.round(100 * count / run.looks)} %`))))] : []),
      ...(run.status.hints?.length ? [make("ul", {class: "why"}, ...run.status.hints.map(hint => make("li", {}, hint)))] : []));
  }
}

const bow = (a, b, c, d) => `M${a} ${b} Q${(a + c) / 2 + (d - b) * 0.12} ${(b + d) / 2 - (c - a) * 0.12} ${c} ${d}`;
