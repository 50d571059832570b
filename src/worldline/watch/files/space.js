// Members in space, where the run says where they are: agents of spacetime, and models of a world.

class Space {
  constructor(place) {
    this.run = runs[0]; this.version = -1; this.tracks = new Map();
    this.sheet = new Sheet(place, () => this.draw());
  }

  // The pieces of each member's way: from when, where, and how fast; straight until the next.
  read() {
    const {run} = this;
    if (this.version === run.version) return this.tracks;
    this.version = run.version;
    this.tracks = new Map();
    for (const note of run.notes) {
      const {parts} = note;
      if (!parts || !Array.isArray(parts.at)) continue;
      const [time, ...place] = parts.at, track = this.tracks.get(note.who) || [];
      const last = track.at(-1);
      let velocity = last ? last.velocity : place.map(() => 0);
      if (Array.isArray(parts.velocity)) velocity = parts.velocity.slice(1).map(each => each / parts.velocity[0]);
      track.push({at: time * 1e9, place, velocity, alive: parts.kind !== "died"});
      this.tracks.set(note.who, track);
    }
    return this.tracks;
  }

  get isThere() { return this.read().size > 0; }

  where(track, time) {
    const place = lowest(track.length, each => track[each].at > time) - 1;
    if (place < 0) return null;
    const {at, place: start, velocity} = track[place];
    return start.map((each, axis) => each + velocity[axis] * (time - at) / 1e9);
  }

  draw() {
    const {sheet, run} = this, {pen, width, height} = sheet, tracks = this.read();
    const bounds = [[Infinity, -Infinity], [Infinity, -Infinity]];
    for (const track of tracks.values()) for (const time of [...track.map(each => each.at), run.end]) {
      const spot = this.where(track, time);
      if (spot) [0, 1].forEach(axis => { const value = spot[axis] ?? 0; bounds[axis] = [Math.min(bounds[axis][0], value), Math.max(bounds[axis][1], value)]; });
    }
    const margin = 4 * theme.size, spread = bounds.map(([low, high]) => Math.max(high - low, 1e-9));
    const scale = Math.min((width - 2 * margin) / spread[0], (height - 2 * margin) / spread[1]);
    const x = value => width / 2 + (value - (bounds[0][0] + bounds[0][1]) / 2) * scale;
    const y = value => height / 2 - (value - (bounds[1][0] + bounds[1][1]) / 2) * scale;
    let number = 0;
    for (const [member, track] of tracks) {
      const color = colorOf(number++), spot = this.where(track, look.now);
      pen.strokeStyle = color; pen.lineWidth = 1.5; pen.globalAlpha = 0.45; pen.beginPath();
      for (const {at} of track) if (at <= look.now) { const p = this.where(track, at); pen.lineTo(x(p[0]), y(p[1] ?? 0)); }
      if (spot) pen.lineTo(x(spot[0]), y(spot[1] ?? 0));
      pen.stroke(); pen.globalAlpha = 1;
      if (!spot) continue;
      pen.fillStyle = color; pen.beginPath(); pen.arc(x(spot[0]), y(spot[1] ?? 0), 0.5 * theme.size, 0, 7); pen.fill();
      const above = spot.length < 2 && number % 2 ? -1 : 1;
      sheet.write(run.members[member], x(spot[0]), y(spot[1] ?? 0) + above * 1.5 * theme.size, color, "center");
    }
    this.underWay(x, y, tracks);
  }

  // Messages that are under way at the moment, where they are if they go straight.
  underWay(x, y, tracks) {
    const {run, sheet} = this, {pen} = sheet;
    if (!run.columns) return;
    const {sent, arrival, sender, receiver, topic, lost} = run.columns;
    for (let row = run.rowAt(look.now - run.longest); row < run.rowAt(look.now); row++) {
      if (receiver[row] < 0 || arrival[row] <= look.now || !tracks.has(sender[row]) || !tracks.has(receiver[row])) continue;
      const a = this.where(tracks.get(sender[row]), sent[row]), b = this.where(tracks.get(receiver[row]), arrival[row]);
      if (!a || !b) continue;
      const share = (look.now - sent[row]) / (arrival[row] - sent[row]), spot = a.map((each, axis) => each + (b[axis] - each) * share);
      pen.fillStyle = lost[row] >= 0 ? theme.alarm : colorOf(topic[row]);
      pen.fillRect(x(spot[0]) - 4, y(spot[1] ?? 0) - 4, 8, 8);
    }
  }
}
