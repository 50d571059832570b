// A world of solids in three dimensions, drawn back to front: enough for boxes, wheels and robots, and no library.

const LIGHT = [0.4, 0.3, 0.87], CROWD = 30;  // From so many movers on, names would hide them.

class World {
  constructor(place) {
    this.scene = null; this.turn = 0; this.tilt = 0.55; this.scale = 0; this.center = [0, 0, 0]; this.touching = this.mouse = null; this.bySecondary = false;
    this.sheet = new Sheet(place, () => this.draw());
    this.choice = make("button", {type: "button", "aria-pressed": "false", hidden: true, onclick: () => {
      this.bySecondary = !this.bySecondary; this.choice.setAttribute("aria-pressed", String(this.bySecondary)); redraw();
    }}, "By secondary");
    place.append(make("div", {class: "caption buttons"}, this.choice, ...[["3-D", 0.55], ["From above", Math.PI / 2]].map(([text, tilt]) =>
      make("button", {type: "button", onclick: () => { this.tilt = tilt; this.scale = 0; redraw(); }}, text))));
    this.legend = new Legend(place, "lower");
    const {canvas} = this.sheet;
    canvas.addEventListener("wheel", event => { event.preventDefault(); this.scale *= Math.exp(-event.deltaY * 0.001); redraw(); }, {passive: false});
    canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); this.touching = [event.clientX, event.clientY]; });
    canvas.addEventListener("pointerup", () => { this.touching = null; });
    canvas.addEventListener("dblclick", () => { this.scale = 0; redraw(); });
    canvas.addEventListener("pointerleave", () => { this.mouse = null; redraw(); });
    canvas.addEventListener("pointermove", event => {
      const area = canvas.getBoundingClientRect();
      this.mouse = [event.clientX - area.left, event.clientY - area.top];
      if (!this.touching) { redraw(); return; }
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
    const found = await ask("scene", {show: 0, have: this.scene?.kept ?? 0, stride: this.scene?.stride ?? 0});
    if (!found) return;
    const {first, times, ways} = found;
    if (first) {  // It goes on from there.
      found.times = [...this.scene.times.slice(0, first), ...times];
      found.ways = Object.fromEntries(Object.entries(this.scene.ways).map(([frame, way]) => [frame, way.slice(0, first)]));
      for (const [frame, way] of Object.entries(ways)) {
        const before = found.ways[frame] ??= [];
        while (before.length < first) before.push(before.at(-1) ?? way[0]);
        before.push(...way);
      }
    }
    if (!this.scene && new Set(found.solids.map(({name, frame}) => frame === "world" ? "" : name.split("/")[0])).size > CROWD) this.tilt = 1;  // They stand in each other's light.
    this.scene = found;
    this.readPlacements(found.placements ?? []);
    redraw();
  }

  // Turn, move and enlarge what is seen so that all movers and levels are; levels not if movers were dots then.
  fit() {
    const {width, height} = this.sheet, {ways, solids} = this.scene, margin = 3 * theme.size;
    const corners = (x, y, z, a, b, c) => [-a, a].flatMap(i => [-b, b].flatMap(j => [-c, c].map(k => [x + i / 2, y + j / 2, z + k / 2])));
    const movers = Object.values(ways).flatMap(way => [0, 0.25, 0.5, 0.75, 1].map(share => way[Math.round(share * (way.length - 1))])).flatMap(([x, y, z]) => corners(x, y, z, 1, 1, 1));
    const levels = solids.filter(({frame, color}) => frame === "world" && color[3] < 1).flatMap(({pose: [x, y, z], size}) => corners(x, y, z, ...size));
    const isFlat = this.tilt > 1.5, turns = isFlat ? [-Math.PI / 2, 0] : [-0.9, -0.9 - Math.PI / 2, -0.3, -0.3 - Math.PI / 2];
    const fits = points => turns.map(turn => {
      const s = Math.sin(turn), c = Math.cos(turn), st = Math.sin(this.tilt), ct = Math.cos(this.tilt);
      const across = points.map(([x, y]) => c * y - s * x), down = points.map(([x, y, z]) => (c * x + s * y) * st - z * ct);
      const [left, right, top, bottom] = [least(across), -least(across.map(each => -each)), least(down), -least(down.map(each => -each))];
      const u = (left + right) / 2, v = (top + bottom) / 2 / st;
      return {turn, scale: Math.min(Math.max(width - 2 * margin, margin) / (right - left), Math.max(height - 2 * margin, margin) / (bottom - top)), center: [c * v - s * u, s * v + c * u, 0]};
    }).reduce((best, each) => each.scale > 1.1 * best.scale ? each : best);
    const near = fits(movers), all = fits([...movers, ...levels]);
    ({turn: this.turn, scale: this.scale, center: this.center} = near.scale < 4 * all.scale ? all : near);
  }

  // Which secondary has which model, from when on; said only if there are several.
  readPlacements(placements) {
    this.owners = [...new Set(placements.flatMap(([, of]) => Object.values(of)))].sort();
    this.placements = placements;
    this.choice.hidden = this.owners.length < 2;
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
    if (!this.scale) this.fit();
    const s = Math.sin(this.turn), c = Math.cos(this.turn), st = Math.sin(this.tilt), ct = Math.cos(this.tilt);
    const seen = ([x, y, z]) => {
      const dx = x - this.center[0], dy = y - this.center[1], dz = z - this.center[2], along = c * dx + s * dy;
      return [width / 2 + (-s * dx + c * dy) * this.scale, height / 2 + (along * st - dz * ct) * this.scale, along * ct + dz * st];
    };
    const faces = [], owners = new Map(), tops = new Map();
    if (this.bySecondary) for (const {name} of this.scene.solids) { const model = name.split("/")[0]; if (!owners.has(model)) owners.set(model, this.owner(model)); }
    for (const solid of this.scene.solids) {
      const frame = this.pose(solid.frame), isFloor = solid.frame === "world" && solid.size[2] < 0.02 * solid.size[0];
      const placed = point => moved(moved(point, solid.pose), frame);
      for (const face of facesOf(solid, placed)) faces.push({...face, solid, isFloor, depth: isFloor ? -1e9 : Math.max(...face.points.map(point => seen(point)[2])) + (solid.color[3] < 1 ? -1e6 : 0)});
    }
    faces.sort((a, b) => a.depth - b.depth);
    const floors = lowest(faces.length, place => faces[place].depth > -1e9);
    faces.forEach(({points, normal, radius, solid, isFloor}, number) => {
      if (number === floors) { this.drawGrid(seen); this.drawTrails(seen); }
      const own = owners.get(solid.name.split("/")[0]), [r, g, b] = own ? rgbOf(colorOf(own.number)) : isPlain(solid) ? rgbOf(colorOf(1)) : solid.color, a = solid.color[3], spots = points.map(seen);
      const bright = normal ? 0.62 + 0.38 * Math.max(0, normal[0] * LIGHT[0] + normal[1] * LIGHT[1] + normal[2] * LIGHT[2]) : 0.9;
      const color = [r, g, b].map(each => Math.round(255 * Math.min(1, each * bright + 0.06))), isLevel = a < 1 && solid.frame === "world";
      pen.fillStyle = `rgba(${color},${isLevel ? 0.2 * a : isFloor ? 0.15 * a : a})`;  // Neither is to outshine what moves.
      pen.strokeStyle = isLevel ? `rgba(${color},0.55)` : `rgba(0,0,0,${0.25 * a})`; pen.lineWidth = isLevel ? 1 : 0.7; pen.beginPath();
      if (radius) pen.arc(spots[0][0], spots[0][1], radius * this.scale, 0, 7);
      else spots.forEach(([x, y], place) => place ? pen.lineTo(x, y) : pen.moveTo(x, y));
      pen.closePath(); pen.fill(); if ((a === 1 && !isFloor) || isLevel) pen.stroke();
      const model = solid.name.split("/")[0], top = Math.min(...spots.map(([, y]) => y)) - (radius ?? 0) * this.scale;
      tops.set(model, Math.min(top, tops.get(model) ?? top));
    });
    this.label(seen, tops);
    this.legend.show(this.bySecondary ? this.owners.map((name, number) => [name, number % theme.colors.length]) : []);
  }

  // Lines on the ground, a round number of meters apart.
  drawGrid(seen) {
    const {pen, width, height} = this.sheet, reach = 1.5 * Math.hypot(width, height) / this.scale;
    const step = nice(reach / 24), from = axis => Math.ceil((this.center[axis] - reach) / step) * step;
    pen.strokeStyle = theme.soft; pen.globalAlpha = 0.2; pen.lineWidth = 1; pen.beginPath();
    for (const axis of [0, 1])
      for (let place = from(axis); place < this.center[axis] + reach; place += step)
        [-reach, reach].forEach((far, end) => {
          const across = this.center[1 - axis] + far, [x, y] = seen(axis ? [across, place, 0] : [place, across, 0]);
          if (end) pen.lineTo(x, y); else pen.moveTo(x, y);
        });
    pen.stroke(); pen.globalAlpha = 1;
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

  // The name of each model that moves, above it, where there is room: first of the one under the mouse, of many that alone.
  label(seen, tops) {
    const {sheet, mouse} = this, models = new Map(), taken = [];
    for (const {frame, name} of this.scene.solids) {
      const model = name.split("/")[0];
      if (frame !== "world" && !models.has(model)) models.set(model, seen(this.pose(frame)));
    }
    const far = ([, [x, y]]) => mouse ? Math.hypot(x - mouse[0], y - mouse[1]) : Infinity, named = [...models].sort((a, b) => Math.min(far(a), 30) - Math.min(far(b), 30));
    for (const [model, [x]] of named.length > CROWD ? named.filter(each => far(each) < 30).slice(0, 1) : named) {
      const owner = this.bySecondary ? this.owner(model) : null, isNew = owner && look.now - owner.since < 0.3e9, top = tops.get(model) - 0.5 * theme.size;
      sheet.label(isNew ? `${model} → ${owner.name}` : model, [[x, top], [x, top - 1.1 * theme.size]], isNew ? theme.hold : theme.ink, taken, "center");
    }
  }
}

const least = numbers => numbers.reduce((best, each) => Math.min(best, each), Infinity);

// Whether a solid moves that has no color: of things in gray it is the one to look at. Wheels are dark.
const isPlain = ({frame, color: [r, g, b]}) => frame !== "world" && r === g && g === b && r > 0.3;

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
