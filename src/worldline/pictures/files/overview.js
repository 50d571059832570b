// The overview: members with their times and counts, and which participant waits for which.

class Overview {
  constructor(place) {
    this.place = place; this.counted = new Map();
    this.body = make("div", {class: "columns"});
    place.append(this.body);
    listeners.push(() => { if (place.offsetParent !== null) this.draw(); });
    this.shown = "";
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

  draw() {
    const tables = runs.map(run => this.table(run)), state = JSON.stringify(tables.map(each => each.key));
    if (state === this.shown) return;
    this.shown = state;
    this.body.textContent = "";
    for (const each of tables) this.body.append(...each.parts());
  }

  table(run) {
    const counts = this.counts(run), standings = new Map((run.status.standings || []).map(each => [each.name, each]));
    const waits = run.status.waits || [], holders = new Set(waits.map(wait => wait.holder));
    const rows = run.members.map((name, member) => ({name, member, ...counts[member], standing: standings.get(name), holds: holders.has(name)}))
      .filter(row => row.name || row.sent).sort((a, b) => a.name.localeCompare(b.name, undefined, {numeric: true})).slice(0, 1000);
    const losses = counts.reasons.filter(([, count]) => count), fine = value => value ? value.toLocaleString("en") : "";
    const parts = () => [
      make("table", {class: "members"}, make("tr", {}, ...[runs.length > 1 ? run.facts.file : "", standings.size ? "state" : "", "time", "sent", "received", "not received", ""].map(text => make("th", {}, text))),
        ...rows.map(row => make("tr", {class: row.holds ? "holder" : null}, make("td", {}, row.name || "(outside)"), make("td", {}, row.standing?.state ?? ""),
          make("td", {class: "number"}, timeText(row.standing?.now ?? row.last)), ...[row.sent, row.received, row.lost].map(value => make("td", {class: "number"}, fine(value))),
          make("td", {}, row.standing?.remark ?? "")))),
      ...(losses.length ? [make("table", {}, make("tr", {}, make("th", {}, "not received because"), make("th", {}, "messages")),
        ...losses.map(([reason, count]) => make("tr", {}, make("td", {}, reason), make("td", {class: "number"}, fine(count)))))] : []),
      ...(waits.length ? [make("ul", {class: "why"}, ...waits.slice(0, 20).map(wait => make("li", {}, wait.why)))] : []),
    ];
    return {key: [rows.map(row => [row.name, row.sent, row.received, row.lost, row.holds, row.standing?.now, row.standing?.state]), losses, waits], parts};
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
