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
    const tracks = this.read();
    if ([...tracks.values()].every(track => track[0].place.length === 1)) this.drawOverTime(tracks); else this.drawAtMoment(tracks);
  }

  // Agents on a line: their ways over time, which goes upwards, with the light cones of the moment.
  drawOverTime(tracks) {
    const {sheet, run} = this, {pen, width, height} = sheet, margin = 4 * theme.size, spots = [];
    for (const track of tracks.values()) for (const time of [...track.map(each => each.at), run.end]) spots.push(this.where(track, time)?.[0] ?? 0);
    const low = Math.min(...spots), high = Math.max(...spots, low + 1e-9);
    const x = value => margin + (value - low) / (high - low) * (width - 2 * margin), y = time => height - margin - time / run.end * (height - 2 * margin);
    const step = nice(run.end / 8);
    for (let time = 0; time <= run.end; time += step) {
      pen.strokeStyle = theme.faint; pen.lineWidth = 1; sheet.line(margin, y(time), width - margin, y(time));
      sheet.write(timeText(time, step, run.end), 4, y(time) + 4, theme.soft);
    }
    pen.strokeStyle = theme.mark; pen.lineWidth = 1.5; sheet.line(margin, y(look.now), width - margin, y(look.now));
    let number = 0;
    for (const [member, track] of tracks) {
      const color = colorOf(number++), spot = this.where(track, look.now), until = run.stays.get(member)?.[1] ?? run.end;
      pen.strokeStyle = color; pen.lineWidth = 2.5; pen.beginPath();
      for (const {at, place} of track) pen.lineTo(x(place[0]), y(at));
      pen.lineTo(x(this.where(track, until)[0]), y(until)); pen.stroke();
      if (!spot) continue;
      pen.lineWidth = 1; pen.globalAlpha = 0.35; pen.setLineDash([5, 5]);  // Light, at one unit of space in one of time.
      for (const way of [-1, 1]) for (const time of [0, run.end]) sheet.line(x(spot[0]), y(look.now), x(spot[0] + way * (time - look.now) / 1e9), y(time));
      pen.globalAlpha = 1; pen.setLineDash([]);
      pen.fillStyle = color; pen.beginPath(); pen.arc(x(spot[0]), y(look.now), 0.45 * theme.size, 0, 7); pen.fill();
      sheet.write(run.members[member], x(spot[0]), y(look.now) - (0.8 + 1.1 * (number % 3)) * theme.size, color, "center");
    }
    if (!run.columns) return;
    const {sent, arrival, sender, receiver, topic} = run.columns;
    for (let row = 0; row < Math.min(run.count, ARROWS_MAX); row++) {
      if (receiver[row] < 0 || !tracks.has(sender[row]) || !tracks.has(receiver[row])) continue;
      const a = this.where(tracks.get(sender[row]), sent[row]), b = this.where(tracks.get(receiver[row]), arrival[row]);
      if (!a || !b) continue;
      pen.strokeStyle = pen.fillStyle = colorOf(topic[row]); pen.lineWidth = 1.5;
      sheet.line(x(a[0]), y(sent[row]), x(b[0]), y(arrival[row])); head(sheet, x(a[0]), y(sent[row]), x(b[0]), y(arrival[row]));
    }
  }

  drawAtMoment(tracks) {
    const {sheet, run} = this, {pen, width, height} = sheet;
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
