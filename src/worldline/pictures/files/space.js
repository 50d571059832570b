// Agents in space: where they are at the moment; on a line, their ways over time. Colored by class or state.

const SHAPES = 4, LIGHTS_MAX = 300, AXES = ["x", "y", "z"];

class Space {
  constructor(place) {
    this.run = runs[0]; this.version = -1; this.agents = new Map(); this.walls = []; this.kinds = []; this.mouse = null;
    this.sheet = new Sheet(place, () => this.draw());
    this.legend = new Legend(place);
    this.showAll();
    const {canvas} = this.sheet, spot = event => { const area = canvas.getBoundingClientRect(); return [event.clientX - area.left, event.clientY - area.top]; };
    let held = false;
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.enlarge(Math.exp(-event.deltaY * 0.0015), ...spot(event)); }, {passive: false});
    canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); held = true; this.mouse = spot(event); });
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => { held = false; });
    canvas.addEventListener("pointermove", event => {
      const here = spot(event);
      if (held && this.mouse) { this.shift[0] += here[0] - this.mouse[0]; this.shift[1] += here[1] - this.mouse[1]; }
      this.mouse = here;
      redraw();
    });
    canvas.addEventListener("pointerleave", () => { this.mouse = null; redraw(); });
    canvas.addEventListener("dblclick", () => { this.showAll(); redraw(); });
  }

  showAll() { this.zoom = 1; this.shift = [0, 0]; }

  // Draw everything larger or smaller; what is at a spot of the screen stays there.
  enlarge(factor, x, y) {
    const zoom = Math.max(0.2, Math.min(1e4, this.zoom * factor)), by = zoom / this.zoom;
    this.shift = [x - (x - this.shift[0]) * by, y - (y - this.shift[1]) * by];
    this.zoom = zoom;
    redraw();
  }

  // Where on the screen something is, given where it would be if all were shown.
  seen(axis, place) { return value => place(value) * this.zoom + this.shift[axis]; }

  // What the notes say of each agent: the pieces of its way, straight until the next; what it is shown as; how it ended.
  read() {
    const {run} = this;
    if (this.version === run.version) return this.agents;
    this.version = run.version;
    this.agents = new Map(); this.walls = []; this.light = 1;
    for (const {who, parts} of run.notes) {
      if (parts && Array.isArray(parts.walls)) { this.walls = parts.walls; this.light = parts.c || 1; }
      if (!parts || !Array.isArray(parts.at)) continue;
      const [time, ...place] = parts.at, at = time * 1e9;
      let agent = this.agents.get(who);
      if (!agent) this.agents.set(who, agent = {pieces: [], looks: [], ended: null, failure: null});
      const last = agent.pieces.at(-1);
      let velocity = last ? last.velocity : place.map(() => 0);
      if (Array.isArray(parts.velocity)) velocity = parts.velocity.slice(1).map(each => each / parts.velocity[0]);
      agent.pieces.push({at, place, velocity, isJump: parts.kind === "jumped", isEnd: parts.kind === "died" || parts.kind === "failed"});
      if (parts.kind === "born" || parts.kind === "shown") agent.looks.push({at, text: parts.what || "", isState: parts.kind === "shown"});
      if (parts.kind === "died") agent.ended = at;
      if (parts.kind === "failed") agent.failure = {at, text: parts.what};
    }
    this.readKinds();
    return this.agents;
  }

  // Classes and states have a color and a shape each; agents of one class that never say what they are, one each.
  readKinds() {
    const looks = [...this.agents.values()].flatMap(agent => agent.looks), texts = new Set();
    for (const each of looks.sort((a, b) => a.at - b.at)) texts.add(each.text);
    const isShared = texts.size > 1 || looks.some(each => each.isState);
    for (const agent of this.agents.values()) {
      const states = agent.looks.filter(each => each.isState);
      agent.looks = states.length && states[0].at <= agent.looks[0].at ? states : agent.looks;
    }
    const seen = new Set([...this.agents.values()].flatMap(agent => agent.looks).map(each => each.text));
    this.kinds = isShared ? [...texts].filter(text => seen.has(text)) : [];
    [...this.agents.values()].forEach((agent, number) => { agent.number = number; });
  }

  get isThere() { return this.read().size > 0; }

  kind(agent, time) {
    if (!this.kinds.length) return agent.number;
    const place = lowest(agent.looks.length, each => agent.looks[each].at > time) - 1;
    return this.kinds.indexOf(agent.looks[Math.max(0, place)]?.text);
  }
  color(agent, time) { return colorOf(Math.max(0, this.kind(agent, time))); }

  where(agent, time) {
    const {pieces} = agent, place = lowest(pieces.length, each => pieces[each].at > time) - 1;
    if (place < 0 || agent.ended !== null && time > agent.ended || agent.failure && time > agent.failure.at + 1) return null;
    const {at, place: start, velocity, isEnd} = pieces[place];
    return isEnd ? start : start.map((each, axis) => each + velocity[axis] * (time - at) / 1e9);
  }

  // The times at which an agent's way has corners.
  corners(agent) { return [...agent.pieces.map(piece => piece.at), agent.ended ?? agent.failure?.at ?? this.run.end]; }

  draw() {
    const agents = this.read();
    this.hovered = null;
    if (!agents.size) return;
    if (this.spreadOf !== this.version) { this.spreadOf = this.version; this.spread(agents); }
    if (this.axes.length < 2) this.drawOverTime(agents); else this.drawAtMoment(agents);
    this.explain(agents);
    if (this.hovered) this.sheet.label(this.hovered.text, [[this.hovered.x + 12, this.hovered.y - 8], [this.hovered.x - 12, this.hovered.y - 8]], theme.ink, []);
  }

  explain(agents) {
    const counts = this.kinds.map(() => 0);
    for (const agent of agents.values()) if (this.where(agent, look.now) && this.kinds.length) counts[this.kind(agent, look.now)]++;
    const isOneEach = this.kinds.length >= agents.size;  // Then their names say it.
    this.legend.show(isOneEach ? [] : this.kinds.slice(0, 12).map((text, number) => [`${text || "(nameless)"} ${counts[number]}`, number]));
  }

  // Agents on a line: their ways over time, which goes upwards, with the light cones of the moment.
  drawOverTime(agents) {
    const {sheet, run} = this, {pen, width, height} = sheet, margin = 4 * theme.size, top = 2.4 * theme.size, taken = [];
    const [axis] = this.axes, [low, high] = this.bounds[0];
    const x = this.seen(0, value => margin + (value - low) / (high - low) * (width - 2 * margin));
    const y = this.seen(1, time => height - margin - time / run.end * (height - margin - top));
    const step = niceTime(run.end / 8 / this.zoom), perPixel = run.end / (height - margin - top) / this.zoom;
    const first = Math.max(0, Math.ceil((y(0) - height) * perPixel / step)), last = Math.min(run.end, y(0) * perPixel) / step;
    for (let time = first * step; time <= last * step; time += step) {
      pen.strokeStyle = theme.faint; pen.lineWidth = 1; sheet.line(margin, y(time), width - margin, y(time));
      sheet.write(timeText(time, step, run.end), 4, y(time) + 4, theme.soft);
    }
    const across = nice((high - low) / Math.max(2, width / (8 * theme.size)) / this.zoom), bottom = Math.min(height, y(0) + margin) - margin;
    const left = Math.max(low, low + (margin - x(low)) / (x(high) - x(low)) * (high - low)), right = Math.min(high, low + (width - margin - x(low)) / (x(high) - x(low)) * (high - low));
    for (let value = Math.ceil(left / across) * across; value <= right + 1e-9; value += across)
      sheet.write(String(Number(value.toPrecision(6))), x(value), bottom + 1.4 * theme.size, theme.soft, "center");
    pen.strokeStyle = theme.mark; pen.lineWidth = 1.5; sheet.line(margin, y(look.now), width - margin, y(look.now));
    sheet.write(`${AXES[axis]} →`, 4, 1.2 * theme.size, theme.soft);
    this.drawArrows(agents, x, y, axis);
    const size = 0.45 * theme.size;
    this.keepClear(agents, spot => [x(spot[axis]), y(look.now)], size, taken);
    for (const [member, agent] of agents) {
      for (let place = 0; place < agent.pieces.length; place++) {
        const from = agent.pieces[place], until = agent.pieces[place + 1], to = until?.at ?? this.corners(agent).at(-1);
        const end = until?.isJump ? from.place[axis] + from.velocity[axis] * (to - from.at) / 1e9 : until ? until.place[axis] : this.where(agent, to)?.[axis] ?? from.place[axis];
        pen.strokeStyle = this.color(agent, from.at); pen.lineWidth = 2.5; sheet.line(x(from.place[axis]), y(from.at), x(end), y(to));
        if (until?.isJump) { pen.setLineDash([2, 4]); sheet.line(x(end), y(to), x(until.place[axis]), y(to)); pen.setLineDash([]); }
      }
      if (agent.ended !== null) { pen.strokeStyle = theme.soft; const last = agent.pieces.at(-1); cross(sheet, x(last.place[axis]), y(agent.ended), 5); }
      this.drawFailure(agent, x(agent.pieces.at(-1).place[axis]), agent.failure ? y(agent.failure.at) : 0, taken);
      const spot = this.where(agent, look.now), color = this.color(agent, look.now);
      if (!spot) continue;
      pen.strokeStyle = color; pen.lineWidth = 1.2; pen.globalAlpha = 0.5; pen.setLineDash([5, 5]);
      for (const way of [-1, 1]) for (const time of [0, run.end]) sheet.line(x(spot[axis]), y(look.now), x(spot[axis] + way * this.light * (time - look.now) / 1e9), y(time));
      pen.globalAlpha = 1; pen.setLineDash([]);
      this.drawBody(agent, member, x(spot[axis]), y(look.now), size, spot, taken);
    }
  }

  drawArrows(agents, x, y, axis) {
    const {run, sheet} = this, {pen} = sheet;
    if (!run.columns) return;
    const {sent, arrival, sender, receiver, topic, lost} = run.columns;
    for (let row = 0; row < Math.min(run.count, ARROWS_MAX); row++) {
      if (receiver[row] < 0 || lost[row] >= 0 || !agents.has(sender[row]) || !agents.has(receiver[row])) continue;
      const a = this.where(agents.get(sender[row]), sent[row]), b = this.where(agents.get(receiver[row]), arrival[row]);
      if (!a || !b) continue;
      pen.strokeStyle = pen.fillStyle = run.color(topic[row]); pen.lineWidth = 1.2; pen.globalAlpha = 0.7;
      sheet.line(x(a[axis]), y(sent[row]), x(b[axis]), y(arrival[row])); head(sheet, x(a[axis]), y(sent[row]), x(b[axis]), y(arrival[row]));
      pen.globalAlpha = 1;
    }
  }

  // Take the places of bodies: no name is to cover one.
  keepClear(agents, placed, size, taken) {
    for (const agent of agents.values()) {
      const spot = this.where(agent, look.now);
      if (!spot) continue;
      const [px, py] = placed(spot);
      taken.push([px - size, py - size, px + size, py + size]);
    }
  }

  // A body with its name beside it; the one under the mouse says more.
  drawBody(agent, member, px, py, size, spot, taken) {
    const {sheet, run} = this, {pen} = sheet, kind = Math.max(0, this.kind(agent, look.now));
    pen.fillStyle = colorOf(kind); outlined(pen, Math.floor(kind / theme.colors.length), px, py, size); pen.fill();
    const name = run.members[member] || "";
    if (this.mouse && Math.hypot(this.mouse[0] - px, this.mouse[1] - py) < Math.max(10, size))
      this.hovered = {x: px, y: py, text: `${name}${this.kinds.length ? ", " + this.kinds[kind] : ""}  (${spot.map(each => Number(each.toPrecision(5))).join(", ")})`};
    if (this.agents.size > 60) return;
    const away = size + 4;
    sheet.label(name, [[px + away, py - size / 2], [px + away, py + 1.2 * theme.size], [px - away - sheet.pen.measureText(name).width, py - size / 2], [px - sheet.pen.measureText(name).width / 2, py - away]], theme.ink, taken);
  }

  drawFailure({failure}, px, py, taken) {
    if (!failure || failure.at > look.now) return;
    const {pen} = this.sheet;
    pen.strokeStyle = theme.alarm; pen.lineWidth = 2.5; pen.beginPath(); pen.arc(px, py, 9, 0, 7); pen.stroke();
    cross(this.sheet, px, py, 4);
    this.sheet.label(fitted(pen, failure.text, 30 * theme.size), [[px + 14, py + 0.4 * theme.size], [px + 14, py + 1.6 * theme.size], [px + 14, py - theme.size]], theme.alarm, taken);
  }

  // The axes, two at most, in which agents are spread most, and how far; there is always one.
  spread(agents) {
    const dimensions = Math.max(...[...agents.values()].map(agent => agent.pieces[0].place.length)), bounds = [...Array(dimensions)].map(() => [Infinity, -Infinity]);
    for (const agent of agents.values()) for (const time of this.corners(agent)) this.where(agent, time)?.forEach((value, axis) => { bounds[axis] = [Math.min(bounds[axis][0], value), Math.max(bounds[axis][1], value)]; });
    const wide = axis => bounds[axis][1] - bounds[axis][0], ordered = bounds.map((_, axis) => axis).sort((a, b) => wide(b) - wide(a) || a - b);
    this.axes = ordered.filter((axis, place) => !place || place < 2 && wide(axis) > 1e-9 * wide(ordered[0])).sort();
    this.bounds = this.axes.map(axis => [bounds[axis][0], Math.max(bounds[axis][1], bounds[axis][0] + 1e-9)]);
  }

  drawAtMoment(agents) {
    const {sheet} = this, {pen, width, height} = sheet, taken = [];
    const {axes, bounds} = this, margin = 3.5 * theme.size, [across, up] = bounds.map(([low, high]) => high - low);
    const whole = Math.min(Math.max(width - 2 * margin, margin) / across, Math.max(height - 2 * margin, margin) / up), scale = whole * this.zoom;
    const x = this.seen(0, value => width / 2 + (value - (bounds[0][0] + bounds[0][1]) / 2) * whole);
    const y = this.seen(1, value => height / 2 - (value - (bounds[1][0] + bounds[1][1]) / 2) * whole);
    this.drawGrid(x, y, scale, axes);
    this.drawWalls(x, y, axes);
    const messages = this.underWay(agents);
    this.drawLight(messages, x, y, scale, axes);
    const trail = this.run.end / 8;
    for (const agent of agents.values()) {
      const spot = this.where(agent, look.now);
      if (!spot || agents.size > 500) continue;
      pen.strokeStyle = this.color(agent, look.now); pen.lineWidth = 1.5; pen.globalAlpha = 0.4; pen.beginPath();
      const times = [look.now - trail, ...agent.pieces.map(piece => piece.at).filter(at => at > look.now - trail && at < look.now), look.now];
      for (const time of times) { const p = this.where(agent, time); if (p) pen.lineTo(x(p[axes[0]]), y(p[axes[1]])); }
      pen.stroke(); pen.globalAlpha = 1;
    }
    const size = Math.max(2, Math.min(0.5 * theme.size, 40 / Math.sqrt(agents.size)));
    const small = messages.length > 100 ? 3 : 6;
    for (const {a, b, row} of messages) {
      const {sent, arrival, topic} = this.run.columns, share = (look.now - sent[row]) / (arrival[row] - sent[row]);
      pen.fillStyle = this.run.isLost(row) ? theme.alarm : this.run.color(topic[row]);
      pen.fillRect(x(a[axes[0]] + (b[axes[0]] - a[axes[0]]) * share) - small / 2, y(a[axes[1]] + (b[axes[1]] - a[axes[1]]) * share) - small / 2, small, small);
    }
    this.keepClear(agents, spot => [x(spot[axes[0]]), y(spot[axes[1]])], size, taken);
    for (const [member, agent] of agents) {
      const spot = this.where(agent, look.now), last = agent.pieces.at(-1).place;
      if (spot) this.drawBody(agent, member, x(spot[axes[0]]), y(spot[axes[1]]), size, spot, taken);
      else if (agent.ended !== null && agent.ended <= look.now) { pen.strokeStyle = theme.soft; cross(sheet, x(last[axes[0]]), y(last[axes[1]]), 0.7 * size); }
      this.drawFailure(agent, x(last[axes[0]]), y(last[axes[1]]), taken);
    }
  }

  drawGrid(x, y, scale, axes) {
    const {sheet} = this, {pen, width, height} = sheet, step = nice(7 * theme.size / scale);
    pen.strokeStyle = theme.faint; pen.lineWidth = 1;
    const zero = [x(0), y(0)], left = Math.ceil(-zero[0] / scale / step), right = Math.floor((width - zero[0]) / scale / step);
    for (let n = left; n <= right; n++) { sheet.line(x(n * step), 0, x(n * step), height); sheet.write(String(Number((n * step).toPrecision(6))), x(n * step), height - 6, theme.soft, "center"); }
    for (let n = Math.ceil((zero[1] - height) / scale / step); n <= Math.floor(zero[1] / scale / step); n++) { sheet.line(0, y(n * step), width, y(n * step)); if (y(n * step) < height - 2 * theme.size) sheet.write(String(Number((n * step).toPrecision(6))), 4, y(n * step) - 4, theme.soft); }
    sheet.write(`${AXES[axes[0]]} →   ${AXES[axes[1]]} ↑`, 4, 1.2 * theme.size, theme.soft);
  }

  // Boundaries that are lines here. A plane is where normal·X + offset = 0, and the product counts space negative.
  drawWalls(x, y, axes) {
    const {sheet} = this, {pen, width, height} = sheet, far = width + height;
    for (const {normal, offset} of this.walls) {
      const [p, q] = axes.map(axis => normal[axis + 1]), rest = offset + normal[0] * look.now / 1e9, length = Math.hypot(p, q);
      if (!length || normal.some((part, axis) => axis && part && !axes.includes(axis - 1))) continue;
      const [cx, cy] = [x(p * rest / length ** 2), y(q * rest / length ** 2)], [dx, dy] = [-q / length * far, -p / length * far];
      pen.strokeStyle = theme.ink; pen.lineWidth = 2; sheet.line(cx - dx, cy - dy, cx + dx, cy + dy);
    }
  }

  // Messages that are under way at the moment, with where they begin and end.
  underWay(agents) {
    const {run} = this, found = [];
    if (!run.columns) return found;
    const {sent, arrival, sender, receiver} = run.columns;
    for (let row = run.rowAt(look.now - run.longest); row < run.rowAt(look.now); row++) {
      if (receiver[row] < 0 || arrival[row] <= look.now || !agents.has(sender[row]) || !agents.has(receiver[row])) continue;
      const a = this.where(agents.get(sender[row]), sent[row]), b = this.where(agents.get(receiver[row]), arrival[row]);
      if (a && b) found.push({a, b, row});
    }
    return found;
  }

  // How far light has come from where messages were sent.
  drawLight(messages, x, y, scale, axes) {
    const {pen} = this.sheet, {sent} = this.run.columns ?? {};
    pen.strokeStyle = theme.hold; pen.lineWidth = 1; pen.globalAlpha = 0.3;
    for (const {a, row} of messages.slice(0, LIGHTS_MAX)) { pen.beginPath(); pen.arc(x(a[axes[0]]), y(a[axes[1]]), this.light * (look.now - sent[row]) / 1e9 * scale, 0, 7); pen.stroke(); }
    pen.globalAlpha = 1;
  }
}

// Trace the outline of a body: a circle, a square, a triangle or a rhomb.
function outlined(on, shape, x, y, radius) {
  shape %= SHAPES;
  on.beginPath();
  if (shape === 0) { on.arc(x, y, radius, 0, 7); return; }
  const count = shape === 2 ? 3 : 4, turn = shape === 1 ? Math.PI / 4 : -Math.PI / 2, size = radius * (shape === 2 ? 1.4 : 1.25);
  for (let i = 0; i < count; i++) on[i ? "lineTo" : "moveTo"](x + size * Math.cos(turn + i * 2 * Math.PI / count), y + size * Math.sin(turn + i * 2 * Math.PI / count));
  on.closePath();
}
