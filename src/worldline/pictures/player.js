"use strict";
// What all players share: the controls, the clock, the pen and the view. After it comes the player of one kind of
// picture, which draws. It ends with `begin(kind)`, where the kind is
//
//   from, to    its first and last moment, in units of its own,
//   perSecond   how many of them pass in a second at speed 1,
//   moves       whether there is anything to play,
//   themed      the names of the CSS colors that it draws with,
//   switches    the ids of its checkboxes,
//   fit()       called when the canvas has another size: puts `zoom`, `left` and `low`,
//   explain()   writes the legend, when colors are known,
//   draw()      draws the moment `now`, and returns what the clock shows and, if that differs, what is read aloud.

const byId = id => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const canvas = byId("view"), pen = canvas.getContext("2d"), tip = byId("tip"), legend = byId("legend");
const play = byId("play"), slider = byId("time"), clock = byId("clock"), speed = byId("speed");
const still = matchMedia("(prefers-reduced-motion: reduce)"), night = matchMedia("(prefers-color-scheme: dark)");

// The view, from units of the data to pixels, and the colors.
let width = 0, height = 0, ratio = 1, zoom = 1, left = 0, low = 0, colors = [];
const theme = {};
const sx = x => left + zoom * x;
const sy = y => low - zoom * y;

let kind = null, now = 0, playing = false, before = 0, mouse = null;

function begin(given) {
  kind = given;
  now = kind.from;
  const {from, to} = kind, length = to - from;
  play.addEventListener("click", () => set(!playing));
  slider.addEventListener("input", () => go(from + Number(slider.value) / 1000 * length));
  for (const name of ["speed", ...kind.switches]) byId(name).addEventListener("change", draw);
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target === speed) return;
    const step = length * (event.shiftKey ? 0.002 : 0.02), at = speed.selectedIndex;
    if (event.key === " ") { if (event.target.type === "checkbox") return; set(!playing); }
    else if (event.key === "ArrowLeft") go(now - step);
    else if (event.key === "ArrowRight") go(now + step);
    else if (event.key === "ArrowUp") { speed.selectedIndex = Math.min(at + 1, speed.options.length - 1); draw(); }
    else if (event.key === "ArrowDown") { speed.selectedIndex = Math.max(at - 1, 0); draw(); }
    else if (event.key === "Home") go(from);
    else if (event.key === "End") go(to);
    else return;
    event.preventDefault();
  });
  // A focused button would take the space key for a second click.
  play.addEventListener("keyup", event => { if (event.key === " ") event.preventDefault(); });
  for (const name of ["pointermove", "pointerdown"]) canvas.addEventListener(name, event => {
    mouse = spotUnder(event);
    if (!playing) draw();
  });
  canvas.addEventListener("pointerleave", () => { mouse = null; if (!playing) draw(); });
  new ResizeObserver(measure).observe(canvas);
  night.addEventListener("change", measure);
  measure();
  set(!still.matches && kind.moves);
}

function measure() {
  const area = canvas.getBoundingClientRect();
  width = area.width; height = area.height; ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "soft", "faint", ...kind.themed])
    theme[name] = style.getPropertyValue("--" + name).trim();
  colors = night.matches ? data.night : data.day;
  kind.fit();
  legend.textContent = "";
  kind.explain();
  draw();
}

function draw() {
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.globalAlpha = 1;
  pen.fillStyle = theme.paper;
  pen.fillRect(0, 0, width, height);
  const [shown, spoken = shown] = kind.draw(), length = kind.to - kind.from;
  clock.textContent = shown;
  slider.value = String(length ? (now - kind.from) / length * 1000 : 0);
  slider.setAttribute("aria-valuetext", spoken);
}

function tick(time) {
  if (!playing) return;
  now += Math.min(0.1, (time - before) / 1000) * kind.perSecond * Number(speed.value);
  before = time;
  if (now >= kind.to) { now = kind.to; set(false); }
  draw();
  if (playing) requestAnimationFrame(tick);
}

function set(on) {
  playing = on && kind.to > kind.from;
  play.textContent = playing ? "❚❚ Pause" : "▶ Play";
  play.setAttribute("aria-pressed", String(playing));
  if (!playing) return;
  if (now >= kind.to) now = kind.from;
  before = performance.now();
  requestAnimationFrame(tick);
}

function go(time) { now = Math.max(kind.from, Math.min(kind.to, time)); draw(); }

function spotUnder(event) {
  const area = canvas.getBoundingClientRect();
  return [event.clientX - area.left, event.clientY - area.top];
}

// What kinds draw with.

const between = (a, b, share) => a + (b - a) * share;
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Return the last place from `low` on, and before `high`, whose time isn't after this one; `low` if there is none.
function lastUntil(time, timeAt, low, high) {
  while (high - low > 1) { const mid = (low + high) >> 1; if (timeAt(mid) <= time) low = mid; else high = mid; }
  return low;
}

// Return the least of 1, 2, 5 times a power of ten that isn't below a number.
function nice(least) {
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= least) || power;
}

function line(a, b, c, d) { pen.beginPath(); pen.moveTo(a, b); pen.lineTo(c, d); pen.stroke(); }

// Write a text with a halo, so that it can be read on lines.
function written(text, x, y) {
  pen.save();
  pen.strokeStyle = theme.paper; pen.lineWidth = 3; pen.lineJoin = "round";
  pen.strokeText(text, x, y); pen.fillText(text, x, y);
  pen.restore();
}

// Add an entry to the legend: a sample, a text, and what else is behind it.
function entry(sample, text, ...more) {
  const item = document.createElement("li"), name = document.createElement("span");
  name.textContent = text;
  item.append(sample, name, ...more);
  legend.append(item);
}

// Show what is under the mouse, at a pixel, or nothing.
function tell(text, x = 0, y = 0) {
  tip.hidden = text === null;
  if (text === null) return;
  tip.textContent = text;
  tip.style.left = Math.max(4, Math.min(x, width - tip.offsetWidth - 6)) + "px";
  tip.style.top = Math.max(4, Math.min(y, height - tip.offsetHeight - 6)) + "px";
}
