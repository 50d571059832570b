"""The program of the page that plays an animation of a world, in JavaScript for any browser of today."""

PROGRAM = r"""
"use strict";
const byId = id => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const canvas = byId("view"), pen = canvas.getContext("2d"), tip = byId("tip"), legend = byId("legend");
const play = byId("play"), slider = byId("time"), clock = byId("clock"), speed = byId("speed");
const still = matchMedia("(prefers-reduced-motion: reduce)"), night = matchMedia("(prefers-color-scheme: dark)");

// Differences add up. Times are in seconds, lengths in millimeters, directions in parts of a turn.
const sums = numbers => { let sum = 0; return numbers.map(each => sum += each); };
const iterations = sums(data.iterations), steps = sums(data.steps), cuts = new Set(data.cuts);
const times = iterations.map(each => each * data.step), last = times.length - 1;
const begin = times[0] || 0, end = last < 0 ? 0 : times[last], length = end - begin;
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
  let low = 0, high = last;
  while (high - low > 1) { const mid = (low + high) >> 1; if (times[mid] <= time) low = mid; else high = mid; }
  if (last > 0 && times[high] <= time) low = high;
  return [low, low < last ? Math.min(1, (time - times[low]) / (times[low + 1] - times[low])) : 0];
}

const between = (a, b, share) => a + (b - a) * share;

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

let width = 0, height = 0, ratio = 1, zoom = 1, left = 0, low = 0, colors = [], theme = {};
let view = null;  // The middle and the zoom, once somebody has chosen them.
function measure() {
  const area = canvas.getBoundingClientRect();
  width = area.width; height = area.height; ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "soft", "faint", "still", "level"])
    theme[name] = style.getPropertyValue("--" + name).trim();
  colors = night.matches ? data.night : data.day;
  look();
  explain();
}
function look() {
  const margin = 30, w = Math.max(box[2] - box[0], 1), h = Math.max(box[3] - box[1], 1);
  const whole = Math.max(1e-6, Math.min((width - 2 * margin) / w, (height - 2 * margin) / h));
  const [x, y, closer] = view || [(box[0] + box[2]) / 2, (box[1] + box[3]) / 2, 1];
  zoom = whole * closer; left = width / 2 - zoom * x; low = height / 2 + zoom * y;
}
const sx = x => left + zoom * x, sy = y => low - zoom * y;

function explain() {
  legend.textContent = "";
  const named = data.secondaries.length > 1 || (data.secondaries[0] || "") !== "";
  const entry = (text, color, border) => {
    const item = document.createElement("li"), sample = document.createElement("i");
    const name = document.createElement("span");
    sample.style.background = color; sample.style.border = border;
    name.textContent = text;
    item.append(sample, name);
    legend.append(item);
  };
  if (named) data.secondaries.forEach((name, owner) => entry(name || "alone", colorOf(owner), "none"));
  if (data.levels.length) {
    entry("active level", theme.level + "55", "2px solid " + theme.level);
    entry("level", "transparent", "1px solid " + theme.still);
  }
  if (data.statics.length) entry("static", theme.still, "none");
}

let now = begin, playing = false, before = 0, mouse = null, dragged = null;

function number(value) { return String(+value.toPrecision(6)); }

function draw() {
  const [frame, share] = frameAt(now);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.globalAlpha = 1;
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, width, height);
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
  clock.textContent = time.toFixed(3) + " s, step " + step + (step === total ? "" : " (iteration " + total + ")");
  slider.value = String(length ? (now - begin) / length * 1000 : 0);
  slider.setAttribute("aria-valuetext", clock.textContent);
}

function nice(least) {
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= least) || power;
}

function line(a, b, c, d) { pen.beginPath(); pen.moveTo(a, b); pen.lineTo(c, d); pen.stroke(); }

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

// Write a text with a halo, so that it can be read on lines.
function written(text, x, y) {
  pen.save();
  pen.strokeStyle = theme.paper; pen.lineWidth = 3; pen.lineJoin = "round";
  pen.strokeText(text, x, y); pen.fillText(text, x, y);
  pen.restore();
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
  const from = frameAt(Math.max(begin, now - 3))[0], many = data.movers.filter(mover => mover.performs).length;
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

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

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
  tip.hidden = found < 0;
  if (found < 0) return;
  const mover = data.movers[found], [x, y] = here[found], owner = data.secondaries[ownerOf(mover, frame)];
  tip.textContent = mover.name + (mover.name === mover.model ? "" : " (" + mover.model + ")") +
    "\n" + (x / 1000).toFixed(2) + ", " + (y / 1000).toFixed(2) + " m" + (owner ? "\nsimulated by " + owner : "");
  tip.style.left = Math.max(4, Math.min(sx(x) + 14, width - tip.offsetWidth - 6)) + "px";
  tip.style.top = Math.max(4, Math.min(sy(y) + 14, height - tip.offsetHeight - 6)) + "px";
}

function tick(time) {
  if (!playing) return;
  now += Math.min(0.1, (time - before) / 1000) * Number(speed.value);
  before = time;
  if (now >= end) { now = end; set(false); }
  draw();
  if (playing) requestAnimationFrame(tick);
}

function set(on) {
  playing = on && length > 0;
  play.textContent = playing ? "❚❚ Pause" : "▶ Play";
  play.setAttribute("aria-pressed", String(playing));
  if (!playing) return;
  if (now >= end) now = begin;
  before = performance.now();
  requestAnimationFrame(tick);
}

function go(time) { now = Math.max(begin, Math.min(end, time)); draw(); }

play.addEventListener("click", () => set(!playing));
slider.addEventListener("input", () => go(begin + Number(slider.value) / 1000 * length));
for (const name of ["speed", "trails", "names"]) byId(name).addEventListener("change", draw);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target === speed) return;
  const step = length * (event.shiftKey ? 0.002 : 0.02), at = speed.selectedIndex;
  if (event.key === " ") { if (event.target.type === "checkbox") return; set(!playing); }
  else if (event.key === "ArrowLeft") go(now - step);
  else if (event.key === "ArrowRight") go(now + step);
  else if (event.key === "ArrowUp") speed.selectedIndex = Math.min(at + 1, speed.options.length - 1);
  else if (event.key === "ArrowDown") speed.selectedIndex = Math.max(at - 1, 0);
  else if (event.key === "Home") go(begin);
  else if (event.key === "End") go(end);
  else return;
  event.preventDefault();
});
// A focused button would take the space key for a second click.
play.addEventListener("keyup", event => { if (event.key === " ") event.preventDefault(); });

// The wheel zooms, dragging moves, a double click shows all.
function spotUnder(event) {
  const area = canvas.getBoundingClientRect();
  return [event.clientX - area.left, event.clientY - area.top];
}
function center() { return [(width / 2 - left) / zoom, (low - height / 2) / zoom, view ? view[2] : 1]; }
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const [a, b] = spotUnder(event), x = (a - left) / zoom, y = (low - b) / zoom, old = center();
  const closer = Math.max(0.2, Math.min(500, old[2] * Math.exp(-event.deltaY / 500))), share = old[2] / closer;
  view = [x + (old[0] - x) * share, y + (old[1] - y) * share, closer];
  look(); draw();
}, {passive: false});
canvas.addEventListener("pointerdown", event => {
  dragged = spotUnder(event);
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointerup", () => { dragged = null; draw(); });
canvas.addEventListener("pointermove", event => {
  mouse = spotUnder(event);
  if (dragged) {
    const old = center();
    view = [old[0] - (mouse[0] - dragged[0]) / zoom, old[1] + (mouse[1] - dragged[1]) / zoom, old[2]];
    dragged = mouse;
    look();
  }
  if (!playing || dragged) draw();
});
canvas.addEventListener("pointerleave", () => { mouse = null; if (!playing) draw(); });
canvas.addEventListener("dblclick", () => { view = null; look(); draw(); });
const fit = () => { measure(); draw(); };
new ResizeObserver(fit).observe(canvas);
night.addEventListener("change", fit);
fit();
set(!still.matches && last > 0);
"""
