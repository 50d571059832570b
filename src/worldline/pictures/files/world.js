// A world of solids in three dimensions, drawn back to front: enough for boxes, wheels and robots, and no library.

const LIGHT = [0.4, 0.3, 0.87];

class World {
  constructor(place) {
    this.scene = null; this.turn = -0.9; this.tilt = 0.55; this.scale = 0; this.center = [0, 0, 0]; this.touching = null; this.bySecondary = false;
    this.sheet = new Sheet(place, () => this.draw());
    place.append(make("div", {class: "caption buttons"}, ...[["3-D", 0.55], ["From above", Math.PI / 2]].map(([text, tilt]) =>
      make("button", {type: "button", onclick: () => { this.tilt = tilt; if (tilt > 1) this.turn = -Math.PI / 2; redraw(); }}, text))));
    this.secondaries = make("div", {class: "caption legend lower"});
    place.append(this.secondaries);
    const {canvas} = this.sheet;
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.scale *= Math.exp(-event.deltaY * 0.001); redraw(); }, {passive: false});
    canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); this.touching = [event.clientX, event.clientY]; });
    canvas.addEventListener("pointerup", () => { this.touching = null; });
    canvas.addEventListener("pointermove", event => {
      if (!this.touching) return;
      const [x, y] = this.touching, dx = event.clientX - x, dy = event.clientY - y;
      this.touching = [event.clientX, event.clientY];
      if (event.shiftKey) {
        const s = Math.sin(this.turn), c = Math.cos(this.turn);
        this.center[0] -= (-s * dx + c * dy / Math.sin(this.tilt)) / this.scale; this.center[1] -= (c * dx + s * dy / Math.sin(this.tilt)) / this.scale;
      } else { this.turn -= dx * 0.008; this.tilt = Math.max(0.05, Math.min(Math.PI / 2, this.tilt + dy * 0.008)); }
      redraw();
    });
  }

  async open() {
    const found = await ask("scene", {show: 0});
    if (!found) return;
    this.scene = found;
    this.readPlacements(found.placements ?? []);
    const movers = Object.values(found.ways).flatMap(way => [way[0], way[way.length - 1]]);
    const levels = found.solids.filter(({frame, color}) => frame === "world" && color[3] < 1).flatMap(({pose: [x, y], size: [a, b]}) => [[x - a / 2, y - b / 2], [x + a / 2, y + b / 2]]);
    const range = (spots, axis) => [Math.min(...spots.map(spot => spot[axis])), Math.max(...spots.map(spot => spot[axis]))];
    const around = spots => { const [[x, X], [y, Y]] = [range(spots, 0), range(spots, 1)]; return {center: [(x + X) / 2, (y + Y) / 2, 0], extent: 1.25 * Math.max(X - x, Y - y, 2)}; };
    const near = around(movers), all = around([...movers, ...levels]);  // All levels, unless movers would be dots then.
    if (!this.scale) ({center: this.center, extent: this.extent} = all.extent < 1.6 * near.extent ? all : near);
    redraw();
  }

  // Which secondary has which model, from when on; said only if there are several.
  readPlacements(placements) {
    this.owners = [...new Set(placements.flatMap(([, of]) => Object.values(of)))].sort();
    this.placements = placements;
    const key = JSON.stringify([this.owners, this.bySecondary, theme.ink]);
    if (this.owners.length < 2 || key === this.explained) return;
    this.explained = key;
    const button = make("button", {type: "button", "aria-pressed": String(this.bySecondary), onclick: () => { this.bySecondary = !this.bySecondary; this.readPlacements(this.placements); redraw(); }}, "By secondary");
    this.secondaries.replaceChildren(button, ...this.owners.map((name, number) => {
      const sample = make("canvas", {width: 16, height: 16}), on = sample.getContext("2d");
      on.fillStyle = colorOf(number); on.fillRect(0, 0, 16, 16);
      return make("span", {}, sample, name);
    }));
  }

  // The secondary that has a model at the moment, and since when.
  owner(model) {
    let found = null;
    for (const [at, of] of this.placements) if (at <= look.now && of[model] !== undefined && of[model] !== found?.name) found = {name: of[model], since: found ? at : -Infinity};
    return found && {...found, number: this.owners.indexOf(found.name)};
  }

  // Where a frame is at the moment: between the two moments that are known.
  pose(frame) {
    const way = this.scene.ways[frame];
    if (!way) return [0, 0, 0, 0, 0, 0, 1];
    const {times} = this.scene, after = Math.min(lowest(times.length, place => times[place] > look.now), way.length - 1), before = Math.max(0, after - 1);
    const span = times[after] - times[before], share = span > 0 ? Math.max(0, Math.min(1, (look.now - times[before]) / span)) : 0;
    const a = way[before], b = way[after], flip = a[3] * b[3] + a[4] * b[4] + a[5] * b[5] + a[6] * b[6] < 0 ? -1 : 1;
    return a.map((each, place) => each + ((place > 2 ? flip : 1) * b[place] - each) * share);
  }

  draw() {
    if (!this.scene) { this.sheet.write("reading…", 20, 40, theme.soft); return; }
    const {sheet} = this, {pen, width, height} = sheet;
    if (!this.scale) this.scale = Math.min(width, height) / this.extent;
    const s = Math.sin(this.turn), c = Math.cos(this.turn), st = Math.sin(this.tilt), ct = Math.cos(this.tilt);
    const seen = ([x, y, z]) => {
      const dx = x - this.center[0], dy = y - this.center[1], dz = z - this.center[2], along = c * dx + s * dy;
      return [width / 2 + (-s * dx + c * dy) * this.scale, height / 2 + (along * st - dz * ct) * this.scale, along * ct + dz * st];
    };
    this.drawTrails(seen);
    const faces = [], owners = new Map();
    if (this.bySecondary) for (const {name} of this.scene.solids) { const model = name.split("/")[0]; if (!owners.has(model)) owners.set(model, this.owner(model)); }
    for (const solid of this.scene.solids) {
      const frame = this.pose(solid.frame), isFloor = solid.frame === "world" && solid.size[2] < 0.02 * solid.size[0];
      const placed = point => moved(moved(point, solid.pose), frame);
      for (const face of facesOf(solid, placed)) faces.push({...face, solid, depth: isFloor ? -1e9 : Math.max(...face.points.map(point => seen(point)[2])) + (solid.color[3] < 1 ? -1e6 : 0)});
    }
    faces.sort((a, b) => a.depth - b.depth);
    for (const {points, normal, radius, solid} of faces) {
      const own = owners.get(solid.name.split("/")[0]), [r, g, b] = own ? rgbOf(colorOf(own.number)) : solid.color, a = solid.color[3], spots = points.map(seen);
      const bright = normal ? 0.62 + 0.38 * Math.max(0, normal[0] * LIGHT[0] + normal[1] * LIGHT[1] + normal[2] * LIGHT[2]) : 0.9;
      pen.fillStyle = `rgba(${[r, g, b].map(each => Math.round(255 * Math.min(1, each * bright + 0.06)))},${a})`;
      pen.strokeStyle = `rgba(0,0,0,${0.25 * a})`; pen.lineWidth = 0.7; pen.beginPath();
      if (radius) pen.arc(spots[0][0], spots[0][1], radius * this.scale, 0, 7);
      else spots.forEach(([x, y], place) => place ? pen.lineTo(x, y) : pen.moveTo(x, y));
      pen.closePath(); pen.fill(); if (a === 1) pen.stroke();
    }
    this.label(seen);
  }

  // Where each model has been in the last part of the run.
  drawTrails(seen) {
    const {times, ways, solids} = this.scene, {pen} = this.sheet, models = new Map();
    for (const {frame, name} of solids) if (frame !== "world" && !models.has(name.split("/")[0])) models.set(name.split("/")[0], frame);
    const stop = lowest(times.length, place => times[place] > look.now), start = lowest(times.length, place => times[place] >= look.now - (times.at(-1) - times[0]) / 6);
    pen.lineWidth = 1.5; pen.strokeStyle = theme.mark; pen.globalAlpha = 0.35;
    for (const frame of models.values()) {
      const way = ways[frame];
      if (!way) continue;
      pen.beginPath();
      for (let place = start; place < Math.min(stop, way.length); place++) { const [x, y] = seen([way[place][0], way[place][1], 0]); pen.lineTo(x, y); }
      const [x, y] = seen([...this.pose(frame).slice(0, 2), 0]);
      pen.lineTo(x, y); pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  // The name of each model that moves, beside its first body.
  label(seen) {
    const {sheet} = this, named = new Set(), taken = [];
    for (const {frame, name} of this.scene.solids) {
      const model = name.split("/")[0];
      if (frame === "world" || named.has(model)) continue;
      named.add(model);
      const [x, y] = seen(this.pose(frame)), spots = [...Array(12).keys()].map(place => [x, y - (1.2 * place + 2) * theme.size]);
      const owner = this.bySecondary ? this.owner(model) : null, isNew = owner && look.now - owner.since < 0.3e9;
      sheet.label(isNew ? `${model} → ${owner.name}` : model, spots, isNew ? theme.hold : theme.ink, taken, "center");
    }
  }
}

const rgbOf = color => [1, 3, 5].map(place => parseInt(color.slice(place, place + 2), 16) / 255);

// Move a point by a pose: turned by its quaternion, then shifted.
function moved([x, y, z], [px, py, pz, qx, qy, qz, qw]) {
  const tx = 2 * (qy * z - qz * y), ty = 2 * (qz * x - qx * z), tz = 2 * (qx * y - qy * x);
  return [px + x + qw * tx + qy * tz - qz * ty, py + y + qw * ty + qz * tx - qx * tz, pz + z + qw * tz + qx * ty - qy * tx];
}

const CUBE = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]];

function facesOf({kind, size: [a, b, c]}, placed) {
  if (kind === "sphere") return [{points: [placed([0, 0, 0])], normal: null, radius: a / 2}];
  const shape = points => {
    const [p, q, r] = points, u = q.map((each, axis) => each - p[axis]), v = r.map((each, axis) => each - p[axis]);
    const n = [u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]], length = Math.hypot(...n) || 1;
    return {points, normal: n.map(each => each / length)};
  };
  if (kind === "cube") {
    const corners = [...Array(8).keys()].map(n => placed([a / 2 * (n & 4 ? 1 : -1), b / 2 * (n & 2 ? 1 : -1), c / 2 * (n & 1 ? 1 : -1)]));
    return CUBE.map(face => shape(face.map(corner => corners[corner])));
  }
  const ring = [...Array(14).keys()].map(n => [a / 2 * Math.cos(n * Math.PI / 7), b / 2 * Math.sin(n * Math.PI / 7)]);
  const low = ring.map(([x, y]) => placed([x, y, -c / 2])), high = ring.map(([x, y]) => placed([x, y, c / 2]));
  return [shape(high), shape([...low].reverse()), ...ring.map((_, n) => shape([low[n], low[(n + 1) % 14], high[(n + 1) % 14], high[n]]))];
}
