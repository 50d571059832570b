// The space-time diagram: a line for each member, an arrow for each message.

const ARROWS_MAX = 1500;   // More can't be told apart; then every so many-th is drawn.
const NOTES_MAX = 3000;    // Of notes, too.
const HEADS_MAX = 500;     // And of so many, their heads can't.
const BOLD_MAX = 200;      // And so many would be one patch of color if they were bold.
const LABELS_MAX = 60;    // Messages whose topics are written.
const CONE_MAX = 200000;   // Rows that are looked through for a cone.
const FAINT = 0.15;

// In a story, what is to come is faint.
const isToCome = time => story !== null && time > look.now;

class Diagram {
  constructor(place, run) {
    this.run = run; this.spots = [];
    this.sheet = new Sheet(place, () => this.draw());
    this.sheet.canvas.setAttribute("role", "img");
    this.sheet.canvas.setAttribute("aria-label", "space-time diagram: members over time, messages as arrows");
    this.legend = new Legend(place);
    navigable(this.sheet, () => this.left(), (x, y, time) => this.click(x, y, time), (x, y) => this.hover(x, y));
  }

  left() {
    const {pen} = this.sheet;
    pen.font = `${0.85 * theme.size}px system-ui, sans-serif`;
    const widest = this.run.members.slice(0, 500).reduce((most, name) => Math.max(most, pen.measureText(name || "(outside)").width), 0);
    return Math.min(widest + 18, this.sheet.width * 0.35);
  }

  // The members that take part, in a natural order.
  lanes() {
    if (this.lanesOf === this.run.members.length) return this.lane;
    const order = natural(this.run.members).filter(number => this.run.members[number] || this.isBusy(number));
    this.lane = new Int32Array(this.run.members.length);
    order.forEach((number, place) => { this.lane[number] = place; });
    this.lanesOf = this.run.members.length;
    this.order = order;
    return this.lane;
  }

  // What comes from outside has a line of its own, if anything does.
  isBusy(number) {
    const {run} = this;
    return run.notes.some(note => note.who === number && run.isFault(note)) || run.columns?.sender.subarray(0, run.count).includes(number);
  }

  draw() {
    const {run, sheet} = this, {pen, width, height} = sheet, lane = this.lanes();
    this.spots = [];
    if (!run.columns) return;
    const start = run.rowAt(look.from - run.longest), stop = run.rowAt(look.to), [rows, stride] = run.some(start, stop, ARROWS_MAX);
    const shown = stride > 1 ? `1 in ${stride.toLocaleString("en")} of ` : "";
    this.legend.show([...topicsShown(run), [`${run.facts.file || ""}  ${shown}${(stop - start).toLocaleString("en")} messages`]]);
    const left = this.left(), bottom = height - 2 * theme.size, head = Math.max(1.6 * theme.size, this.legend.body.offsetHeight + 0.5 * theme.size);
    const room = bottom - head, count = Math.max(1, this.order.length), gap = Math.min(18 * theme.size, room / count), top = head + (room - gap * count) / 2;
    const x = drawAxis(sheet, left, width, bottom);
    const y = member => top + gap * (lane[member] + 0.5);
    this.y = y;
    if (!this.order.length) sheet.write("nothing has happened yet", width / 2, height / 2, theme.soft, "center");
    for (const member of this.order) {
      const [began, ended] = run.stays.get(member) || [0, null];
      pen.strokeStyle = theme.soft; pen.globalAlpha = Math.min(0.55, gap / 30); pen.lineWidth = 1.2;  // Of many, they are to hide no message.
      sheet.line(Math.max(left, x(began)), y(member), Math.min(width, x(ended ?? run.end)), y(member));
      pen.globalAlpha = 1;
    }
    pen.save(); pen.beginPath(); pen.rect(left, 0, width - left, height); pen.clip();
    sheet.edge = left;
    this.drawMessages(x, y, rows, stride);
    const taken = [];
    this.drawNotes(x, y, gap, taken);
    this.labelMessages(x, y, left, taken);
    this.drawChain(x, y);
    this.drawFailure(x, y, bottom);
    this.drawStep(x, y);
    pen.restore();
    sheet.edge = 0;
    const every = Math.max(1, Math.ceil(1.1 * theme.size / gap));
    this.order.forEach((member, place) => {
      if (place % every) return;
      const held = (run.status.waits || []).some(wait => wait.holder === run.members[member]);
      sheet.write(fitted(pen, run.members[member] || "(outside)", left - 10), 6, y(member) + 0.3 * theme.size, held ? theme.hold : theme.ink);
    });
  }

  // How a message is drawn: its color, and whether it arrived. One that the end overtook is no alarm.
  inked(row) {
    const {run} = this, isLost = run.isLost(row), isWhole = run.columns.lost[row] < 0;
    return [isLost ? theme.alarm : isWhole ? run.color(run.columns.topic[row]) : theme.soft, isLost, isWhole];
  }

  drawMessages(x, y, rows, stride) {
    const {run, sheet} = this, {pen} = sheet, {sent, arrival, sender, receiver} = run.columns;
    const cone = look.selected?.run === run ? this.cone(look.selected.row) : null;
    if (stride >= 4 && !cone) { this.drawMany(x, y, rows); return; }
    const isFew = rows.length <= BOLD_MAX, bold = isFew && document.documentElement.classList.contains("large") ? 2 : 1.1, groups = new Map();  // All of one look in one stroke.
    for (const row of rows) {
      if (arrival[row] < look.from) continue;
      const a = x(sent[row]), b = y(sender[row]), [color, isLost, isWhole] = this.inked(row), alone = receiver[row] < 0;
      const c = alone ? a : x(arrival[row]), d = alone ? b : y(receiver[row]), isLater = isToCome(sent[row]);
      const alpha = cone ? (cone.has(row) ? 1 : 0.12) : isLater ? FAINT : stride > 1 ? 0.5 : 0.85;
      const wide = isFew && cone?.has(row) ? 2 * bold : bold, key = `${color} ${alpha} ${isWhole} ${wide}`;
      let group = groups.get(key);
      if (!group) groups.set(key, group = {color, alpha, wide, dash: isWhole ? [] : [4, 3], lines: new Path2D(), heads: new Path2D(), crosses: new Path2D()});
      if (alone) { group.lines.moveTo(a + 2.5, b); group.lines.arc(a, b, 2.5, 0, 7); }
      else {
        group.lines.moveTo(a, b); group.lines.lineTo(c, d);
        if (isLost) { group.crosses.moveTo(c - 4, d - 4); group.crosses.lineTo(c + 4, d + 4); group.crosses.moveTo(c - 4, d + 4); group.crosses.lineTo(c + 4, d - 4); }
        else if (isWhole && rows.length <= HEADS_MAX) headOf(group.heads, a, b, c, d);
      }
      this.spots.push([a, b, c, d, row]);
    }
    for (const {color, alpha, wide, dash, lines, heads, crosses} of groups.values()) {
      pen.strokeStyle = pen.fillStyle = color; pen.globalAlpha = alpha; pen.lineWidth = wide;
      pen.setLineDash(dash); pen.stroke(lines); pen.setLineDash([]); pen.fill(heads);
      pen.lineWidth = 2; pen.stroke(crosses);
    }
    pen.setLineDash([]); pen.globalAlpha = 1;
    if (look.selected?.run === run && look.selected.row !== undefined) {
      const row = look.selected.row - run.first;
      if (row >= 0 && row < run.count && receiver[row] >= 0) {
        pen.strokeStyle = theme.mark; pen.lineWidth = 3; sheet.line(x(sent[row]), y(sender[row]), x(arrival[row]), y(receiver[row]));
      }
    }
  }

  // Many arrows at once: as lines, all of a color in one stroke.
  drawMany(x, y, rows) {
    const {run, sheet} = this, {pen} = sheet, {sent, arrival, sender, receiver} = run.columns, lines = new Map();
    for (const row of rows) {
      if (receiver[row] < 0 || arrival[row] < look.from) continue;
      const [color] = this.inked(row);
      let line = lines.get(color);
      if (!line) lines.set(color, line = new Path2D());
      line.moveTo(x(sent[row]), y(sender[row])); line.lineTo(x(arrival[row]), y(receiver[row]));
    }
    pen.globalAlpha = 0.5; pen.lineWidth = 1;
    for (const [color, line] of lines) { pen.strokeStyle = color; pen.stroke(line); }
    pen.globalAlpha = 1;
  }

  // Write topics on arrows, where they are few: away from lanes, from notes and from each other.
  labelMessages(x, y, left, taken) {
    const {run, sheet} = this, {sent, arrival, sender, receiver, topic, lost} = run.columns;
    const start = run.rowAt(look.from - run.longest), stop = run.rowAt(look.to);
    if (stop - start > LABELS_MAX) return;
    const cone = look.selected?.run === run ? this.cone(look.selected.row) : null;
    taken.push(...this.order.map(member => [left, y(member) - 2, sheet.width, y(member) + 2]));
    for (let row = start; row < stop; row++) {
      if (receiver[row] < 0 || arrival[row] < look.from || cone && !cone.has(row) || isToCome(sent[row])) continue;
      const text = fitted(sheet.pen, run.topics[topic[row]], 14 * theme.size) + (run.isLost(row) ? ` ✕ ${run.reasons[lost[row]]}` : "");
      const spots = [0.5, 0.38, 0.62, 0.26, 0.74].map(share => [x(sent[row] + (arrival[row] - sent[row]) * share), y(sender[row]) + (y(receiver[row]) - y(sender[row])) * share + 0.3 * theme.size]);
      sheet.label(text, spots, this.inked(row)[0], taken, "center");
    }
  }

  drawNotes(x, y, gap, taken) {
    const {run, sheet} = this, {pen} = sheet, start = run.noteAt(look.from), stop = run.noteAt(look.to);
    const steps = [];
    for (const number of sampled(run.firstNote + start, run.firstNote + stop, NOTES_MAX)[0]) {
      const note = run.notes[number - run.firstNote], a = x(note.at), b = y(note.who), fault = run.isFault(note), log = note.topic === LOG;
      pen.fillStyle = pen.strokeStyle = fault ? theme.alarm : log ? theme.mark : theme.soft;
      pen.lineWidth = 1.5; pen.globalAlpha = isToCome(note.at) ? FAINT : 1;
      if (fault) cross(sheet, a, b, 6); else { pen.beginPath(); pen.arc(a, b, log ? 3.5 : 2, 0, 7); pen.fill(); }
      pen.globalAlpha = 1;
      this.spots.push([a, b, a, b, note]);
      if (isToCome(note.at)) continue;
      if (STEPS.has(note.topic)) steps.push([note, a, b]);
      if (!(fault || log) || gap < 1.6 * theme.size) continue;
      const color = fault ? theme.alarm : theme.ink, above = b - 0.5 * theme.size;
      this.labelNote(note, [[a + 6, above], [a + 6, above - 1.1 * theme.size]], color, taken);
    }
    if (gap > 2.5 * theme.size && steps.length <= LABELS_MAX)  // Below the line, where nothing else is.
      for (const [note, a, b] of steps) this.labelNote(note, [[a + 4, b + 1.1 * theme.size], [a + 4, b + 2.1 * theme.size]], theme.soft, taken);
  }

  // Say what a note says: all of it, if there is room for that.
  labelNote({says}, spots, color, taken) {
    const {sheet} = this, {pen} = sheet;
    if (!sheet.label(fitted(pen, says, 40 * theme.size), spots, color, taken) && says.length > 20) sheet.label(fitted(pen, says, 18 * theme.size), spots, color, taken);
  }

  // Where it failed: all that comes later doesn't matter any more.
  drawFailure(x, y, bottom) {
    const {run, sheet} = this, {pen} = sheet, {failedAt, failedBy} = run.status;
    if (failedAt === undefined || failedAt === null) return;
    pen.strokeStyle = theme.alarm; pen.lineWidth = 2; pen.setLineDash([6, 4]); sheet.line(x(failedAt), 0, x(failedAt), bottom); pen.setLineDash([]);
    const who = run.members.indexOf(failedBy);
    if (who >= 0) { pen.fillStyle = theme.alarm; pen.beginPath(); pen.arc(x(failedAt), y(who), 0.45 * theme.size, 0, 7); pen.fill(); }
  }

  // The step of the story that is told.
  drawStep(x, y) {
    const {run, sheet} = this, {pen} = sheet, step = story?.steps[look.step], who = run.members.indexOf(step?.who);
    if (!step || who < 0) return;
    pen.strokeStyle = step.isFailure ? theme.alarm : theme.mark; pen.lineWidth = 3;
    pen.beginPath(); pen.arc(x(step.at), y(who), 0.7 * theme.size, 0, 7); pen.stroke();
  }

  // How a difference came from its first cause to where it was seen last.
  drawChain(x, y) {
    const {run, sheet} = this, {pen} = sheet;
    let before = null;
    pen.strokeStyle = theme.hold; pen.lineWidth = 2.5;
    for (const {member, at} of given.difference?.chain || []) {
      const number = run.members.indexOf(member);
      if (number < 0) continue;
      pen.beginPath(); pen.arc(x(at), y(number), 9, 0, 7); pen.stroke();
      if (before) { pen.setLineDash([2, 4]); sheet.line(...before, x(at), y(number)); pen.setLineDash([]); }
      before = [x(at), y(number)];
    }
  }

  // The rows that a message depends on, and those that depend on it.
  cone(place) {
    if (this.coneOf === place) return this.coneRows;
    const {run} = this, {sent, arrival, sender, receiver, lost} = run.columns, rows = new Set(), row = place - run.first;
    this.coneOf = place; this.coneRows = rows;
    if (row === undefined || Number.isNaN(row) || row < 0 || row >= run.count) return this.coneRows = null;
    rows.add(row);
    const reached = new Map(receiver[row] >= 0 && lost[row] < 0 ? [[receiver[row], arrival[row]]] : []);
    for (let next = row + 1; next < Math.min(run.count, row + CONE_MAX); next++) {
      if (!(reached.get(sender[next]) <= sent[next])) continue;
      rows.add(next);
      if (receiver[next] >= 0 && lost[next] < 0 && !(reached.get(receiver[next]) <= arrival[next])) reached.set(receiver[next], arrival[next]);
    }
    const known = new Map([[sender[row], sent[row]]]);
    for (let before = row - 1; before >= Math.max(0, row - CONE_MAX); before--) {
      if (receiver[before] < 0 || lost[before] >= 0 || !(known.get(receiver[before]) >= arrival[before])) continue;
      rows.add(before);
      if (!(known.get(sender[before]) >= sent[before])) known.set(sender[before], sent[before]);
    }
    return rows;
  }

  nearest(x, y) {
    let best = null, least = 9;
    for (const spot of this.spots) {
      const far = distance(x, y, spot) + (typeof spot[4] === "number" ? 0 : -3);
      if (far < least) { least = far; best = spot[4]; }
    }
    return best;
  }

  hover(x, y) {
    const found = x < 0 ? null : this.nearest(x, y);
    this.sheet.canvas.style.cursor = found === null ? "default" : "pointer";
    this.sheet.canvas.title = found === null ? "" : typeof found === "number" ? this.words(found) : `${timeText(found.at)}  ${found.says}`;
  }

  words(row) {
    const {run} = this, {sent, arrival, sender, receiver, topic, lost} = run.columns;
    const to = receiver[row] < 0 ? "no receiver" : `${run.members[receiver[row]]} at ${timeText(arrival[row])}`;
    return `${run.topics[topic[row]]}: ${run.members[sender[row]]} at ${timeText(sent[row])} → ${to}` + (lost[row] >= 0 ? ` (${run.reasons[lost[row]]})` : "");
  }

  click(x, y, time) {
    const found = this.nearest(x, y);
    if (found === null) { look.selected = null; inspect(null); setNow(time); return; }
    if (typeof found === "number") select(this.run, found);
    else { look.selected = null; setNow(found.at); inspect({title: this.run.members[found.who] || "(outside)", rows: [["time", timeText(found.at)], ["kind", found.topic]], payload: found.text}); }
  }
}

function distance(px, py, [a, b, c, d]) {
  const length = (c - a) ** 2 + (d - b) ** 2;
  const share = length ? Math.max(0, Math.min(1, ((px - a) * (c - a) + (py - b) * (d - b)) / length)) : 0;
  return Math.hypot(px - a - share * (c - a), py - b - share * (d - b));
}

// Trace the head of an arrow.
function headOf(path, a, b, c, d) {
  const far = Math.hypot(c - a, d - b) || 1, size = 0.45 * theme.size / far, u = (c - a) * size, v = (d - b) * size;
  path.moveTo(c, d); path.lineTo(c - 0.92 * u + 0.39 * v, d - 0.92 * v - 0.39 * u); path.lineTo(c - 0.92 * u - 0.39 * v, d - 0.92 * v + 0.39 * u); path.closePath();
}

function head(sheet, a, b, c, d) { sheet.pen.beginPath(); headOf(sheet.pen, a, b, c, d); sheet.pen.fill(); }

function cross(sheet, x, y, size = 4) {
  sheet.pen.setLineDash([]); sheet.pen.lineWidth = 2;
  sheet.line(x - size, y - size, x + size, y + size); sheet.line(x - size, y + size, x + size, y - size);
}

// The lines of a text that are no wider than this, three at most.
function wrapped(pen, text, width) {
  const lines = [];
  for (let words = text.split(" "); words.length && lines.length < 3;) {
    let count = lines.length < 2 ? 1 : words.length;
    while (count < words.length && pen.measureText(words.slice(0, count + 1).join(" ")).width <= width) count++;
    lines.push(fitted(pen, words.splice(0, count).join(" "), width));
  }
  return lines;
}

function fitted(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) { const middle = (low + high + 1) >> 1; if (pen.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1; }
  return text.slice(0, low) + "…";
}

// Select a message, and show all of it.
async function select(run, row) {
  const place = run.first + row, {sent} = run.columns;
  look.selected = {run, row: place};
  setNow(sent[row]);
  try {
    const found = await ask("message", {show: run.number, row: place});
    inspect({title: found.topic, rows: [["from", found.sender], ["sent", timeText(found.sent)], ["to", found.receiver ?? "no receiver"],
      [found.lost ? "would arrive" : "arrives", timeText(found.arrival)], ["takes", timeText(found.arrival - found.sent)], ["number", found.number],
      ...(found.lost ? [["lost", found.lost]] : []), ...(found.bytes === null ? [] : [["bytes", found.bytes.toLocaleString("en")]])],
    payload: found.payload ?? "its payload isn't kept any more: record the run to keep all of them"});
  } catch (error) { inspect({title: "message", rows: [], payload: error.message}); }
}

function inspect(what) {
  const place = byId("inspector");
  place.hidden = what === null;
  place.textContent = "";
  if (what === null) return;
  let payload = what.payload ?? "";
  try { payload = JSON.stringify(JSON.parse(payload), null, 2); } catch { /* It is no JSON, and is shown as it is. */ }
  place.append(make("button", {type: "button", "aria-label": "close", onclick: () => { look.selected = null; inspect(null); redraw(); }}, "×"),
    make("h2", {}, what.title), make("table", {}, ...what.rows.map(([name, value]) => make("tr", {}, make("th", {}, name), make("td", {class: "wide"}, value)))),
    make("pre", {id: "payload"}, plain(payload)));
}
