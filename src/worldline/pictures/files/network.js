// Members in a ring, messages on their way between them, and what each has said last: the view for a lecture.

const WAYS_MAX = 2000;  // Ways that messages have gone which are drawn.
const LINES_MAX = 6;   // Of what a member says.
const FEW = 12;        // Messages under way whose topics are written; there is a legend, too.

// Whether a member is at the top or the foot of the ring: what it says stands above or below, not beside it.
const isAtEnd = across => Math.abs(across) < 0.3;

class Network {
  constructor(place) {
    this.run = runs[0]; this.spots = []; this.version = -1; this.lines = 0;
    this.sheet = new Sheet(place, () => this.draw());
    this.legend = new Legend(place);
    this.sheet.canvas.addEventListener("click", event => this.click(event));
  }

  // How many lines members say at most, so that the ring stays as it is.
  linesSaid() {
    const {run} = this;
    if (this.version === run.version) return this.lines;
    this.version = run.version;
    const states = [...run.states.values()].map(state => Object.keys(state).length), says = run.notes.some(note => note.topic === LOG) ? 2 : 0;
    return this.lines = Math.min(LINES_MAX, Math.max(0, ...states) + says);
  }

  // Where members stand: with their names in them, or else as dots, with those names beside them for which there is room.
  ring(members, isLarge) {
    const {run, sheet} = this, {pen, width, height} = sheet, line = 1.1 * theme.size;
    pen.font = isLarge ? `600 ${theme.size}px system-ui, sans-serif` : `${0.85 * theme.size}px system-ui, sans-serif`;
    const names = new Map(members.map(member => [member, fitted(pen, run.members[member], 12 * theme.size)]));
    const longest = Math.max(...members.map(member => pen.measureText(names.get(member)).width));
    const high = isLarge ? 1.25 * theme.size : Math.max(3, Math.min(8, 200 / members.length));
    const widths = new Map(members.map(member => [member, isLarge ? Math.max(high, pen.measureText(names.get(member)).width / 2 + 0.7 * theme.size) : high]));
    const spots = members.map((_, place) => 2 * Math.PI * place / members.length - Math.PI / 2).map(angle => [Math.cos(angle), Math.sin(angle)]);
    const lines = isLarge ? this.linesSaid() : 1, foot = Math.max(...spots.map(([, down]) => down)), isBelow = spots.some(([across, down]) => isAtEnd(across) && down > 0);
    const top = Math.max(1.8 * theme.size, this.legend.body.offsetHeight + 0.8 * theme.size) + high + lines * line, bottom = height - theme.size - high - (isBelow ? lines : lines / 2) * line, ry = Math.max(40, (bottom - top) / (1 + foot));
    const beside = isLarge ? lines ? Math.min(12 * theme.size, 0.28 * width) : theme.size : longest + theme.size;
    const rx = Math.max(40, Math.min(2 * ry, width / 2 - Math.max(...widths.values()) - beside));
    const at = new Map(members.map((member, place) => { const [across, down] = spots[place]; return [member, [width / 2 + rx * across, top + ry * (1 + down), across, down]]; }));
    const boxes = members.map(member => { const [x, y] = at.get(member), half = widths.get(member); return [x - half, y - high, x + half, y + high]; });
    return {at, names, widths, high, line, boxes, beside, isLarge};
  }

  // The ways that messages go in this run.
  drawWays(at) {
    const {run, sheet} = this, {pen} = sheet;
    if (run.ways.size > WAYS_MAX) return;
    pen.strokeStyle = theme.soft; pen.globalAlpha = 0.3; pen.lineWidth = 1; pen.beginPath();
    for (const way of run.ways) {
      const from = at.get(Math.floor(way / WAYS)), to = at.get(way % WAYS);
      if (from && to) { pen.moveTo(from[0], from[1]); pen.lineTo(to[0], to[1]); }
    }
    pen.stroke(); pen.globalAlpha = 1;
  }

  draw() {
    const {run, sheet} = this, {pen} = sheet;
    const members = natural(run.members).filter(number => run.members[number]);
    if (!run.columns || !members.length) return;
    this.legend.show(topicsShown(run));
    let ring = this.ring(members, true);
    if (ring.boxes.some((box, place) => place && overlap(box, ring.boxes[place - 1]))) ring = this.ring(members, false);
    const {at, names, widths, high, line, boxes, beside, isLarge} = ring, last = this.last(), taken = boxes;
    this.isLarge = isLarge;
    this.drawWays(at);
    const {justNow, labels} = this.messages(at, member => widths.get(member), high);
    for (const [member, [x, y, across, down]] of at) {
      const {log, fault, state} = last.get(member) || {}, isDown = fault?.kind === "down", half = widths.get(member);
      pen.beginPath(); pen.roundRect(x - half, y - high, 2 * half, 2 * high, high);
      pen.fillStyle = isDown ? theme.alarm : justNow.has(member) ? theme.mark : theme.panel; pen.fill();
      pen.strokeStyle = isDown ? theme.alarm : theme.soft; pen.lineWidth = 2; pen.stroke();
      const isBeside = !isAtEnd(across), side = isBeside ? x + Math.sign(across) * (half + 0.5 * theme.size) : x, align = isBeside ? across > 0 ? "left" : "right" : "center";
      if (!isLarge) { sheet.label(names.get(member), [[side, isBeside ? y + (0.3 + 0.7 * down) * theme.size : y + (down < 0 ? -high - 0.4 * theme.size : high + theme.size)]], isDown ? theme.alarm : theme.soft, taken, align); continue; }
      pen.font = `600 ${theme.size}px system-ui, sans-serif`; pen.textAlign = "center";
      pen.fillStyle = justNow.has(member) || isDown ? theme.paper : theme.ink; pen.fillText(names.get(member), x, y + 0.35 * theme.size);
      pen.textAlign = "left"; pen.font = `${0.85 * theme.size}px system-ui, sans-serif`;
      const fresh = state?.at === look.now ? state.says.split(", ") : [];  // What has changed at this very moment.
      const most = isBeside ? beside - 0.5 * theme.size : 20 * theme.size, says = isDown ? wrapped(pen, fault.says, most).map(text => [text, theme.alarm]) : [
        ...(state ? Object.entries(state.parts).map(([name, value]) => stateText({[name]: value})) : []).map(text => [fitted(pen, text, most), fresh.includes(text) ? theme.mark : theme.soft]),
        ...(log ? wrapped(pen, log.says, most) : []).map(text => [text, log.at === look.now ? theme.mark : theme.soft])].slice(-LINES_MAX);
      const first = isBeside ? y - (says.length - 1) / 2 * line + 0.3 * theme.size : down < 0 ? y - high - (says.length - 0.5) * line : y + high + line;
      says.forEach(([text, color], number) => sheet.label(text, [[side, first + number * line]], color, taken, align));
    }
    for (const [topic, x, y, color] of labels) sheet.label(topic, [[x + 8, y - 4], [x + 8, y + theme.size]], color, taken);
    const outside = this.outside();
    if (outside) {  // Below the legend, if they would meet.
      const text = `${timeText(outside.at)}  ${outside.says}`, {offsetLeft, offsetHeight} = this.legend.body;
      sheet.write(text, 0.6 * theme.size, 1.3 * theme.size + (pen.measureText(text).width + 1.2 * theme.size > offsetLeft ? offsetHeight : 0), theme.alarm);
    }
  }

  // What was done to the run as a whole last, such as a partition.
  outside() {
    const {run} = this;
    for (let place = run.noteAt(look.now + 1) - 1; place >= 0; place--)
      if (!run.members[run.notes[place].who] && run.isFault(run.notes[place])) return run.notes[place];
    return null;
  }

  // What each member has said last until the moment, and what was done to it last.
  last() {
    const {run} = this, found = new Map(), stop = run.noteAt(look.now + 1);
    for (let place = Math.max(0, stop - 20000); place < stop; place++) {
      const note = run.notes[place], known = found.get(note.who) || {};
      if (note.kind === "down" || note.kind === "up") known.fault = note;
      else if (note.topic === LOG) known.log = note;
      else if (note.topic === STATE) known.state = note;
      found.set(note.who, known);
    }
    return found;
  }

  // Draw what is under way; return the members at which something happens at this very moment, and what is to be written
  // beside the messages where the members leave room.
  messages(at, half, high) {
    const {run, sheet} = this, {pen} = sheet, {sent, arrival, sender, receiver, topic, lost} = run.columns, justNow = new Set(), rows = [], labels = [];
    const stop = run.rowAt(look.now + 1);
    this.spots = [];
    for (let row = run.rowAt(look.now - run.longest); row < stop; row++) {
      if (sent[row] === look.now) justNow.add(sender[row]);
      if (receiver[row] < 0 || arrival[row] < look.now || !at.has(sender[row]) || !at.has(receiver[row])) continue;
      if (arrival[row] === look.now && lost[row] < 0) justNow.add(receiver[row]);
      rows.push(row);
    }
    pen.font = `${0.85 * theme.size}px system-ui, sans-serif`;
    for (const row of rows.slice(-ARROWS_MAX)) {
      const [a, b] = at.get(sender[row]), [c, d] = at.get(receiver[row]), share = (look.now - sent[row]) / Math.max(1, arrival[row] - sent[row]);
      const far = Math.max(1, Math.hypot(c - a, d - b)), rim = member => Math.min(0.45, half(member) / Math.max(1, Math.abs(c - a)), high / Math.max(1, Math.abs(d - b)));
      const along = rim(sender[row]) + share * (1 - rim(sender[row]) - rim(receiver[row])), x = a + (c - a) * along, y = b + (d - b) * along;  // From rim to rim.
      pen.strokeStyle = pen.fillStyle = run.isLost(row) ? theme.alarm : run.color(topic[row]);
      pen.globalAlpha = 0.4; pen.lineWidth = 1.5; pen.setLineDash(lost[row] >= 0 ? [4, 4] : []); sheet.line(a, b, c, d);
      pen.globalAlpha = 1; pen.setLineDash([]);
      const size = 0.55 * theme.size / far;
      if (run.isLost(row) && share > 0.6) cross(sheet, x, y, 6); else head(sheet, a, b, x + (c - a) * size, y + (d - b) * size);
      this.spots.push([x, y, x, y, row]);
      if (rows.length <= FEW) labels.push([fitted(pen, run.topics[topic[row]], 14 * theme.size), x, y, pen.fillStyle]);
    }
    return {justNow, labels};
  }

  click(event) {
    const area = this.sheet.canvas.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
    const found = this.spots.find(spot => Math.hypot(spot[0] - x, spot[1] - y) < 14);
    if (found) select(this.run, found[4]);
  }
}
