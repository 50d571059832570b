// Plays what moves in a world, seen from above.

// Differences add up. Times are in seconds, lengths in millimeters, directions in parts of a turn.
const sums = numbers => { let sum = 0; return numbers.map(each => sum += each); };
const iterations = sums(data.iterations), steps = sums(data.steps), cuts = new Set(data.cuts);
const times = iterations.map(each => each * data.step), last = times.length - 1;
const start = times[0] || 0, end = last < 0 ? 0 : times[last];
for (const mover of data.movers) {
  mover.runs = mover.runs.map(run => {
    const x = [], y = [], a = [];
    for (let i = 1, p = 0, q = 0, r = 0; i < run.length; i += 3) {
      x.push(p += run[i]); y.push(q += run[i + 1]); a.push(r += run[i + 2]);
    }
    return {from: run[0], x, y, a};
  });
  mover.size = Math.max(100, ...mover.outlines.flat().map(Math.abs));
}

// Return the frame at a time or before it, and how much of the way to the next one has passed.
function frameAt(time) {
  const frame = last > 0 && times[last] <= time ? last : lastUntil(time, place => times[place], 0, last);
  return [frame, frame < last ? Math.min(1, (time - times[frame]) / (times[frame + 1] - times[frame])) : 0];
}

// Return where a mover is: [x, y, angle], or null if it isn't there.
function spotOf(mover, frame, share) {
  for (const {from, x, y, a} of mover.runs) {
    const i = frame - from;
    if (i < 0 || i >= x.length) continue;
    const j = i + 1 < x.length && !cuts.has(frame + 1) ? i + 1 : i;
    const angle = between(a[i], a[j], share) / data.turn * 2 * Math.PI;
    return [between(x[i], x[j], share), between(y[i], y[j], share), angle];
  }
  return null;
}

function isWithin(spans, frame) {
  for (let i = 0; i < spans.length; i += 2) if (spans[i] <= frame && frame < spans[i + 1]) return true;
  return false;
}

function ownerOf(mover, frame) {
  let owner = 0;
  for (let i = 0; i < mover.owners.length && mover.owners[i] <= frame; i += 2) owner = mover.owners[i + 1];
  return owner;
}
const colorOf = owner => colors[owner % colors.length];

// What is seen at first: all levels, and all that moves.
const box = [Infinity, Infinity, -Infinity, -Infinity];
function include(x, y, around) {
  box[0] = Math.min(box[0], x - around); box[1] = Math.min(box[1], y - around);
  box[2] = Math.max(box[2], x + around); box[3] = Math.max(box[3], y + around);
}
for (const {box: [a, b, c, d], buffer} of data.levels) { include(a, b, buffer); include(c, d, buffer); }
for (const {runs, size} of data.movers) for (const {x, y} of runs) x.forEach((_, i) => include(x[i], y[i], size));
if (!(box[0] <= box[2])) for (const {outlines} of data.statics) for (const each of outlines)
  for (let i = 0; i + 1 < each.length; i += 2) include(each[i], each[i + 1], 0);
if (!(box[0] <= box[2])) include(0, 0, 1000);

let view = null;  // The middle and the zoom, once they are chosen by hand.
function fit() {
  const margin = 30, w = Math.max(box[2] - box[0], 1), h = Math.max(box[3] - box[1], 1);
  const whole = Math.max(1e-6, Math.min((width - 2 * margin) / w, (height - 2 * margin) / h));
  const [x, y, closer] = view || [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, 1];
  zoom = whole * closer; left = width / 2 - zoom * x; low = height / 2 + zoom * y;
}

function explain() {
  const named = data.secondaries.length > 1 || (data.secondaries[0] || "") !== "";
  const explained = (text, color, border) => {
    const sample = document.createElement("i");
    sample.style.background = color; sample.style.border = border;
    entry(sample, text);
  };
  if (named) data.secondaries.forEach((name, owner) => explained(name || "alone", colorOf(owner), "none"));
  if (data.levels.length) {
    explained("active level", theme.level + "55", "2px solid " + theme.level);
    explained("level", "transparent", "1px solid " + theme.still);
  }
  if (data.statics.length) explained("static", theme.still, "none");
}

function number(value) { return String(+value.toPrecision(6)); }

function drawWorld() {
  const [frame, share] = frameAt(now);
  grid();
  levels(frame);
  statics(frame);
  const here = data.movers.map(mover => spotOf(mover, frame, share));
  if (byId("trails").checked) trails(here, frame);
  bodies(here, frame);
  if (byId("names").checked) names(here);
  hover(here, frame);
  const time = last < 0 ? 0 : steps[frame] * data.step + share * (frame < last && !cuts.has(frame + 1) ?
    (steps[frame + 1] - steps[frame]) * data.step : 0);
  const total = last < 0 ? 0 : Math.round(between(iterations[frame], iterations[Math.min(last, frame + 1)], share));
  const step = Math.round(time / data.step);
  return [time.toFixed(3) + " s, step " + step + (step === total ? "" : " (iteration " + total + ")")];
}

function grid() {
  const step = nice(90 / zoom);
  pen.strokeStyle = theme.faint; pen.fillStyle = theme.soft; pen.lineWidth = 1;
  pen.font = "11px system-ui, sans-serif"; pen.textAlign = "left";
  const first = Math.ceil(-left / zoom / step), final = Math.floor((width - left) / zoom / step);
  for (let i = first; i <= final && final - first < 99; i++) {
    line(sx(i * step), 0, sx(i * step), height);
    pen.fillText(number(i * step / 1000) + (i === final ? " m" : ""), sx(i * step) + 3, height - 5);
  }
  const bottom = Math.ceil((low - height) / zoom / step), top = Math.floor(low / zoom / step);
  for (let i = bottom; i <= top && top - bottom < 99; i++) {
    line(0, sy(i * step), width, sy(i * step));
    if (sy(i * step) < height - 20) pen.fillText(number(i * step / 1000), 4, sy(i * step) - 4);
  }
}

function levels(frame) {
  pen.font = "600 12px system-ui, sans-serif"; pen.textAlign = "left";
  for (const {name, box: [a, b, c, d], buffer, spans} of data.levels) {
    const active = isWithin(spans, frame), x = sx(a), y = sy(d), w = sx(c) - x, h = sy(b) - y, grown = buffer * zoom;
    pen.fillStyle = pen.strokeStyle = active ? theme.level : theme.still;
    pen.globalAlpha = active ? 0.22 : 0.08; pen.fillRect(x, y, w, h);
    pen.globalAlpha = 1; pen.lineWidth = active ? 2 : 1; pen.strokeRect(x, y, w, h);
    if (buffer) {
      pen.globalAlpha = 0.6; pen.lineWidth = 1; pen.setLineDash([5, 4]);
      pen.strokeRect(x - grown, y - grown, w + 2 * grown, h + 2 * grown);
      pen.setLineDash([]); pen.globalAlpha = 1;
    }
    if (w > 30) { pen.fillStyle = active ? theme.ink : theme.soft; written(fitted(name, w - 10), x + 6, y + 16); }
  }
}

function fitted(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let most = Math.min(text.length, 80);
  while (most > 1 && pen.measureText(text.slice(0, most) + "…").width > room) most--;
  return text.slice(0, most) + "…";
}

// Trace outlines at a place: three numbers are a circle, more are a polygon. All go around in one direction, or one
// within another would be a hole.
function trace(outlines, x, y, angle) {
  const cos = Math.cos(angle), sin = Math.sin(angle);
  const px = (a, b) => sx(x + cos * a - sin * b), py = (a, b) => sy(y + sin * a + cos * b);
  pen.beginPath();
  for (const each of outlines) {
    if (each.length === 3) {
      const a = px(each[0], each[1]), b = py(each[0], each[1]), radius = Math.max(0.5, each[2] * zoom);
      pen.moveTo(a + radius, b); pen.arc(a, b, radius, 0, 2 * Math.PI, true);
      continue;
    }
    for (let i = 0; i < each.length; i += 2)
      pen[i ? "lineTo" : "moveTo"](px(each[i], each[i + 1]), py(each[i], each[i + 1]));
    pen.closePath();
  }
}

function statics(frame) {
  pen.fillStyle = pen.strokeStyle = theme.still; pen.lineWidth = 1;
  for (const {outlines, spans} of data.statics) if (isWithin(spans, frame)) {
    trace(outlines, 0, 0, 0);
    pen.globalAlpha = 0.3; pen.fill(); pen.globalAlpha = 1; pen.stroke();
  }
}

function trails(here, frame) {
  const from = frameAt(Math.max(start, now - 3))[0], many = data.movers.filter(mover => mover.performs).length;
  const stride = Math.max(1, Math.floor((frame - from) / Math.max(10, Math.min(60, 1000 / many))));
  pen.lineWidth = 1.6; pen.globalAlpha = 0.5;
  data.movers.forEach((mover, place) => {
    let spot = here[place];
    if (!spot || !mover.performs) return;
    for (let i = frame, after = frame + 1; i >= from; i -= stride) {
      let broken = false;
      for (let j = i + 1; j <= Math.min(after, frame); j++) broken = broken || cuts.has(j);
      const earlier = broken ? null : spotOf(mover, i, 0);
      if (!earlier) break;
      pen.strokeStyle = colorOf(ownerOf(mover, i));
      line(sx(earlier[0]), sy(earlier[1]), sx(spot[0]), sy(spot[1]));
      spot = earlier; after = i;
    }
  });
  pen.globalAlpha = 1;
}

function bodies(here, frame) {
  data.movers.forEach((mover, place) => {
    const spot = here[place];
    if (!spot) return;
    const color = colorOf(ownerOf(mover, frame));
    pen.fillStyle = color; pen.strokeStyle = mover.performs ? theme.ink : color; pen.lineWidth = 1;
    trace(mover.outlines, ...spot);
    pen.globalAlpha = mover.performs ? 0.85 : 0.55; pen.fill("nonzero");
    pen.globalAlpha = 1; pen.stroke();
    const [x, y, angle] = spot, size = mover.size * zoom;
    if (!mover.performs || size < 4) return;
    pen.lineWidth = 2; pen.strokeStyle = theme.paper;  // Ahead.
    line(sx(x), sy(y), sx(x) + Math.cos(angle) * size * 0.8, sy(y) - Math.sin(angle) * size * 0.8);
  });
}

// Write names next to bodies where they cover no other name.
function names(here) {
  const taken = [];
  pen.font = "12px system-ui, sans-serif"; pen.textAlign = "left";
  for (const performs of [true, false]) data.movers.forEach((mover, place) => {
    if (!here[place] || mover.performs !== performs || taken.length > 80) return;
    const text = fitted(mover.name, 160), wide = pen.measureText(text).width, away = mover.size * zoom + 4;
    const x = sx(here[place][0]), y = sy(here[place][1]);
    for (const [a, b] of [[x - wide / 2, y - away], [x + away, y + 4], [x - away - wide, y + 4]]) {
      const area = [a - 2, b - 11, a + wide + 2, b + 3];
      if (taken.some(other => overlap(area, other))) continue;
      taken.push(area);
      pen.fillStyle = performs ? theme.ink : theme.soft;
      written(text, a, b);
      return;
    }
  });
}

function hover(here, frame) {
  let found = -1, nearest = Infinity;
  if (mouse && !dragged) here.forEach((spot, place) => {
    if (!spot) return;
    const away = Math.hypot(sx(spot[0]) - mouse[0], sy(spot[1]) - mouse[1]);
    if (away < nearest && away < Math.max(10, data.movers[place].size * zoom)) { nearest = away; found = place; }
  });
  if (found < 0) { tell(null); return; }
  const mover = data.movers[found], [x, y] = here[found], owner = data.secondaries[ownerOf(mover, frame)];
  const text = mover.name + (mover.name === mover.model ? "" : " (" + mover.model + ")") +
    "\n" + (x / 1000).toFixed(2) + ", " + (y / 1000).toFixed(2) + " m" + (owner ? "\nsimulated by " + owner : "");
  tell(text, sx(x) + 14, sy(y) + 14);
}

// The wheel zooms, dragging moves, a double click shows all.
let dragged = null;
function center() { return [(width / 2 - left) / zoom, (low - height / 2) / zoom, view ? view[2] : 1]; }
function lookAt(spot) { view = spot; fit(); draw(); }
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const [a, b] = spotUnder(event), x = (a - left) / zoom, y = (low - b) / zoom, old = center();
  const closer = Math.max(0.2, Math.min(500, old[2] * Math.exp(-event.deltaY / 500))), share = old[2] / closer;
  lookAt([x + (old[0] - x) * share, y + (old[1] - y) * share, closer]);
}, {passive: false});
canvas.addEventListener("pointerdown", event => {
  dragged = spotUnder(event);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { dragged = null; draw(); });
canvas.addEventListener("pointermove", event => {
  if (!dragged) return;
  const spot = spotUnder(event), old = center();
  const moved = [old[0] - (spot[0] - dragged[0]) / zoom, old[1] + (spot[1] - dragged[1]) / zoom, old[2]];
  dragged = spot;
  lookAt(moved);
});
canvas.addEventListener("dblclick", () => lookAt(null));

begin({
  from: start, to: end, perSecond: 1, moves: last > 0, themed: ["still", "level"], switches: ["trails", "names"],
  fit, explain, draw: drawWorld,
});
