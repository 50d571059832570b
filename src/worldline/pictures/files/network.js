// Members in a ring, messages on their way between them, and what each has said last: the view for a lecture.

class Network {
  constructor(place) {
    this.run = runs[0];
    this.sheet = new Sheet(place, () => this.draw());
    this.sheet.canvas.addEventListener("click", event => this.click(event));
    this.spots = [];
  }

  draw() {
    const {run, sheet} = this, {pen, width, height} = sheet;
    const members = run.members.map((_, number) => number).filter(number => run.members[number])
      .sort((a, b) => run.members[a].localeCompare(run.members[b], undefined, {numeric: true}));
    if (!run.columns || !members.length) return;
    const radius = Math.max(40, Math.min(width / 2 - 8 * theme.size, height / 2 - 5.5 * theme.size));
    const size = Math.max(5, Math.min(1.7 * theme.size, 2.2 * radius / members.length));
    const at = new Map(members.map((member, place) => {
      const angle = 2 * Math.PI * place / members.length - Math.PI / 2;
      return [member, [width / 2 + radius * Math.cos(angle), height / 2 - theme.size + radius * Math.sin(angle)]];
    }));
    const last = this.last(), justNow = this.messages(at, size);
    for (const [member, [x, y]] of at) {
      const {log, fault, state} = last.get(member) || {}, isDown = fault?.kind === "down";
      pen.beginPath(); pen.arc(x, y, size, 0, 7);
      pen.fillStyle = isDown ? theme.alarm : justNow.has(member) ? theme.mark : theme.panel; pen.fill();
      pen.strokeStyle = isDown ? theme.alarm : theme.soft; pen.lineWidth = 2; pen.stroke();
      if (members.length > 60) continue;
      pen.font = `600 ${0.9 * theme.size}px system-ui, sans-serif`;
      const inside = pen.measureText(run.members[member]).width < 1.8 * size;
      if (inside) { pen.fillStyle = justNow.has(member) || isDown ? theme.paper : theme.ink; pen.textAlign = "center"; pen.fillText(run.members[member], x, y + 0.32 * theme.size); pen.textAlign = "left"; }
      else sheet.write(run.members[member], x, y - size - 5, theme.ink, "center");
      pen.font = `${0.8 * theme.size}px system-ui, sans-serif`;
      const lines = isDown ? [fault.says] : [...(state ? Object.entries(state.parts).map(([name, value]) => stateText({[name]: value})) : []), ...(log ? [log.says] : [])];
      const fresh = state?.at === look.now ? state.says.split(", ") : [];  // What has changed at this very moment.
      lines.slice(0, 5).forEach((line, number) => sheet.write(fitted(pen, line, 16 * theme.size), x, y + size + (1 + 1.05 * number) * theme.size, isDown ? theme.alarm : fresh.includes(line) || line === log?.says && log.at === look.now ? theme.mark : theme.soft, "center"));
    }
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

  // Draw what is under way; return the members at which something happens at this very moment.
  messages(at, size) {
    const {run, sheet} = this, {pen} = sheet, {sent, arrival, sender, receiver, topic, lost} = run.columns, now = new Set();
    const stop = run.rowAt(look.now + 1), taken = [...at.values()].map(([x, y]) => [x - size, y - size, x + size, y + size]);
    this.spots = [];
    for (let row = run.rowAt(look.now - run.longest); row < stop; row++) {
      if (sent[row] === look.now) now.add(sender[row]);
      if (receiver[row] < 0 || arrival[row] < look.now || !at.has(sender[row]) || !at.has(receiver[row])) continue;
      if (arrival[row] === look.now && lost[row] < 0) now.add(receiver[row]);
      const [a, b] = at.get(sender[row]), [c, d] = at.get(receiver[row]), share = (look.now - sent[row]) / Math.max(1, arrival[row] - sent[row]);
      const far = Math.max(1, Math.hypot(c - a, d - b)), inset = size / far, along = inset + share * (1 - 2 * inset);  // From rim to rim.
      const x = a + (c - a) * along, y = b + (d - b) * along;
      pen.strokeStyle = pen.fillStyle = lost[row] >= 0 ? theme.alarm : colorOf(topic[row]);
      pen.globalAlpha = 0.4; pen.lineWidth = 1.5; pen.setLineDash(lost[row] >= 0 ? [4, 4] : []); sheet.line(a, b, c, d);
      pen.globalAlpha = 1; pen.setLineDash([]);
      if (lost[row] >= 0 && share > 0.6) cross(sheet, x, y, 6); else head(sheet, a, b, x, y);
      this.spots.push([x, y, x, y, row]);
      if (taken.length < LABELS_MAX + at.size) sheet.label(run.topics[topic[row]], [[x + 8, y - 4], [x + 8, y + theme.size]], pen.fillStyle, taken);
    }
    return now;
  }

  click(event) {
    const area = this.sheet.canvas.getBoundingClientRect(), x = event.clientX - area.left, y = event.clientY - area.top;
    const found = this.spots.find(spot => Math.hypot(spot[0] - x, spot[1] - y) < 14);
    if (found) select(this.run, found[4]);
  }
}
