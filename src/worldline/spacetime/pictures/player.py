"""The program of the page that plays an animation, in JavaScript for any browser of today."""

PROGRAM = r"""
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const canvas = byId("view"), pen = canvas.getContext("2d"), tip = byId("tip");
const play = byId("play"), slider = byId("time"), clock = byId("clock"), speed = byId("speed");
const still = matchMedia("(prefers-reduced-motion: reduce)"), night = matchMedia("(prefers-color-scheme: dark)");
const flat = data.flat, end = data.end, [t0, dt, x0, y0, dx] = data.scale;

// Ways: corners [t, x, y] are written as differences. To corners in `jumps` an agent jumps.
const agents = data.names.map((name, place) => {
  const t = [], x = [], y = [];
  let a = 0, b = 0, c = 0;
  const way = data.ways[place];
  for (let i = 0; i < way.length; i += 3) {
    t.push(a += way[i]); x.push(b += way[i + 1]); y.push(c += way[i + 2]);
  }
  return {name, t, x, y, jumps: new Set(), died: false, at: 0, hue: place % data.day.length};
});
for (let i = 0; i < data.jumps.length; i += 2) agents[data.jumps[i]].jumps.add(data.jumps[i + 1]);
for (const place of data.died) agents[place].died = true;

const between = (a, b, share) => a + (b - a) * share;
const gone = (each, time) => each.to > each.from ? Math.min(1, (time - each.from) / (each.to - each.from)) : 1;

// Return where an agent is: [x, y, whether it is jumping], or null before its birth and after its end.
function where(agent, time) {
  const t = agent.t, last = t.length - 1;
  if (time < t[0] || time > t[last]) return null;
  let i = agent.at;
  if (t[i] > time || i >= last) i = 0;
  if (i + 1 < last && t[i + 1] <= time) {
    let low = i, high = last;
    while (high - low > 1) { const mid = (low + high) >> 1; if (t[mid] <= time) low = mid; else high = mid; }
    i = low;
  }
  agent.at = i;
  if (i >= last) return [agent.x[last], agent.y[last], false];
  const share = t[i + 1] > t[i] ? Math.min(1, (time - t[i]) / (t[i + 1] - t[i])) : 1;
  const jumping = agent.jumps.has(i + 1) && share < 1;
  return [between(agent.x[i], agent.x[i + 1], share), between(agent.y[i], agent.y[i + 1], share), jumping];
}

// Lambdas: [time since the one before, duration, source, target, what, fate].
const flights = [];
for (let i = 0, time = 0; i < data.flights.length; i += 6) {
  const [wait, lasts, source, target, what, fate] = data.flights.slice(i, i + 6);
  time += wait;
  flights.push({from: time, to: time + lasts, source, target, what, fate});
}
for (const [list, key] of [[data.starts, "a"], [data.goals, "b"]])
  for (let i = 0; i < list.length; i += 3) flights[list[i]][key] = [list[i + 1], list[i + 2]];
for (const each of flights) {
  each.a = each.a || where(agents[each.source], each.from) || [0, 0];
  each.b = each.b || where(agents[each.target], each.to) || each.a;
}

// The window: from units of the data to pixels.
let width = 0, height = 0, ratio = 1, zoom = 1, left = 0, low = 0, past = 1, colours = [], look = {};
const [xMin, yMin, xMax, yMax] = data.box;
function measure() {
  const box = canvas.getBoundingClientRect();
  width = box.width; height = box.height; ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  const margin = 44, w = Math.max(xMax - xMin, 1e-9), h = Math.max(yMax - yMin, 1e-9);
  zoom = (width - 2 * margin) / w;
  if (!flat) zoom = Math.min(zoom, (height - 2 * margin) / h);
  if (!(zoom > 0) || zoom > 1e6) zoom = 1;
  left = width / 2 - zoom * (xMin + xMax) / 2;
  low = flat ? Math.round(height * 0.22) : height / 2 + zoom * (yMin + yMax) / 2;
  // In a line, the past runs down: as fast as light goes aside, unless that shows too little of it.
  past = Math.min(zoom * dt / dx, height * 0.78 / Math.max(1, end * 0.3));
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "ink", "soft", "faint", "light"])
    look[name] = style.getPropertyValue("--" + name).trim();
  colours = night.matches ? data.night : data.day;
}
const sx = x => left + zoom * x;
const sy = y => low - zoom * y;

let now = 0, playing = false, before = 0, mouse = null;
const perSecond = end / Math.max(6, Math.min(30, 6 + flights.length / 40));

function number(value) {
  const size = Math.abs(value);
  return size && (size >= 1e6 || size < 1e-3) ? value.toExponential(3) : String(+value.toPrecision(5));
}

function draw() {
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.globalAlpha = 1;
  pen.fillStyle = look.paper;
  pen.fillRect(0, 0, width, height);
  axes();
  if (flat) history(); else walls();
  const moving = [];
  for (const each of flights) if (each.from <= now && now <= each.to) moving.push(each);
  if (!flat && byId("circles").checked) circles(moving);
  const here = agents.map(agent => where(agent, now));
  if (!flat && byId("trails").checked) trails(here);
  for (const each of moving) dot(each);
  pulses();
  bodies(here);
  hover(here, moving);
  const shown = number(t0 + now * dt);
  clock.textContent = "t = " + shown;
  slider.value = String(end ? now / end * 1000 : 0);
  slider.setAttribute("aria-valuetext", "lab time " + shown);
}

function axes() {
  const step = nice(90 / zoom * dx);
  pen.strokeStyle = look.faint; pen.fillStyle = look.soft; pen.lineWidth = 1;
  pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center";
  const first = Math.ceil((x0 - left / zoom * dx) / step), last = Math.floor((x0 + (width - left) / zoom * dx) / step);
  for (let i = first; i <= last && last - first < 99; i++) {
    const x = sx((i * step - x0) / dx);
    line(x, 0, x, height);
    if (x > 60 && x < width - 40) pen.fillText(number(i * step), x, height - 6);
  }
  pen.textAlign = "right";
  pen.fillText(data.axes[0] + " →", width - 8, height - 6);
  pen.textAlign = "left";
  if (flat) return;
  const bottom = Math.ceil((y0 + (low - height) / zoom * dx) / step), top = Math.floor((y0 + low / zoom * dx) / step);
  for (let i = bottom; i <= top && top - bottom < 99; i++) {
    const y = sy((i * step - y0) / dx);
    line(0, y, width, y);
    if (y < height - 22 && y > 26) pen.fillText(number(i * step), 6, y - 4);
  }
  pen.fillText(data.axes[1] + " ↑", 8, 14);
}

function nice(least) {
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= least) || power;
}

function line(a, b, c, d) { pen.beginPath(); pen.moveTo(a, b); pen.lineTo(c, d); pen.stroke(); }

// Boundaries: where p x + q y = r + s t.
function walls() {
  pen.save();
  pen.strokeStyle = look.soft; pen.lineWidth = 1.4; pen.setLineDash([7, 3, 2, 3]);
  for (const [p, q, r, s] of data.walls) {
    const size = p * p + q * q, share = (r + s * now) / size, far = (width + height) / zoom * 2;
    const x = p * share, y = q * share, along = far / Math.sqrt(size);
    line(sx(x - q * along), sy(y + p * along), sx(x + q * along), sy(y - p * along));
  }
  pen.restore();
}

function circles(moving) {
  pen.strokeStyle = look.light; pen.lineWidth = 1.2;
  const some = Math.min(1, 150 / moving.length), dim = Math.min(1, 0.4 + 20 / moving.length);
  moving.forEach((each, place) => {
    if (Math.floor(place * some) === Math.floor((place - 1) * some) && place) return;
    const share = gone(each, now);
    const radius = Math.hypot(each.b[0] - each.a[0], each.b[1] - each.a[1]) * share * zoom;
    pen.globalAlpha = (0.12 + 0.5 * (1 - share)) * dim;
    pen.beginPath(); pen.arc(sx(each.a[0]), sy(each.a[1]), radius, 0, 2 * Math.PI); pen.stroke();
  });
  pen.globalAlpha = 1;
}

// Return the pixel where a lambda is after some share of its way.
function spotOf(each, share) {
  return [sx(between(each.a[0], each.b[0], share)), flat ? low : sy(between(each.a[1], each.b[1], share))];
}

function dot(each) {
  const share = gone(each, now), [x, y] = spotOf(each, share), [fromX, fromY] = spotOf(each, Math.max(0, share - 0.12));
  pen.globalAlpha = each.fate === 0 ? 0.95 : Math.max(0, 1 - share) * 0.9 + 0.05;
  pen.strokeStyle = pen.fillStyle = colours[agents[each.source].hue];
  pen.lineWidth = 1.3;
  if (!flat) line(fromX, fromY, x, y);
  pen.beginPath(); pen.arc(x, y, 2.4, 0, 2 * Math.PI); pen.fill();
  pen.globalAlpha = 1;
}

// Where a lambda has just been absorbed, a ring says so for a moment.
function pulses() {
  if (still.matches) return;
  const lasts = perSecond * Number(speed.value) * 0.35;
  pen.lineWidth = 1.6;
  for (const each of flights) {
    const age = (now - each.to) / lasts;
    if (each.fate !== 0 || age < 0 || age > 1) continue;
    pen.globalAlpha = (1 - age) * 0.8;
    pen.strokeStyle = colours[agents[each.source].hue];
    pen.beginPath(); pen.arc(sx(each.b[0]), flat ? low : sy(each.b[1]), 5 + 9 * age, 0, 2 * Math.PI); pen.stroke();
  }
  pen.globalAlpha = 1;
}

function trails(here) {
  const lasts = end * 0.12, count = agents.length > 300 ? 3 : 8;
  pen.lineWidth = agents.length > 300 ? 1 : 1.8;
  agents.forEach((agent, place) => {
    if (!here[place]) return;
    pen.strokeStyle = colours[agent.hue];
    let last = here[place], kept = agent.at;
    for (let i = 1; i <= count; i++) {
      const spot = where(agent, now - lasts * i / count);
      if (!spot || spot[2] || last[2]) break;
      pen.globalAlpha = 0.55 * (1 - i / (count + 1));
      line(sx(last[0]), sy(last[1]), sx(spot[0]), sy(spot[1]));
      last = spot;
    }
    agent.at = kept;
  });
  pen.globalAlpha = 1;
}

// A space of one dimension is a line, and below it is the past: worldlines, and lambdas in between.
function history() {
  const down = time => low + (now - time) * past, reach = now - (height - low) / past;
  pen.strokeStyle = look.soft; pen.lineWidth = 1; line(0, low, width, low);
  for (const each of flights) {
    if (each.from > now || each.to < reach) continue;
    pen.globalAlpha = each.fate === 0 ? 0.5 : 0.2;
    pen.strokeStyle = colours[agents[each.source].hue]; pen.lineWidth = 1;
    line(sx(each.a[0]), down(each.from), spotOf(each, gone(each, now))[0], down(Math.min(now, each.to)));
  }
  pen.globalAlpha = 1; pen.lineWidth = 2;
  for (const agent of agents) {
    pen.strokeStyle = colours[agent.hue];
    for (let i = 0; i + 1 < agent.t.length && agent.t[i] <= now; i++) {
      if (agent.t[i + 1] < reach) continue;
      const full = agent.t[i + 1] - agent.t[i], share = full > 0 ? Math.min(1, (now - agent.t[i]) / full) : 1;
      pen.setLineDash(agent.jumps.has(i + 1) ? [5, 4] : []);
      const x = sx(between(agent.x[i], agent.x[i + 1], share));
      line(sx(agent.x[i]), down(agent.t[i]), x, down(agent.t[i] + full * share));
    }
    pen.setLineDash([]);
    const last = agent.t.length - 1;
    if (agent.died && agent.t[last] <= now) cross(sx(agent.x[last]), down(agent.t[last]), 5);
  }
  pen.lineWidth = 1.4; pen.strokeStyle = look.soft; pen.setLineDash([7, 3, 2, 3]);
  for (const [p, , r, s] of data.walls)
    line(sx((r + s * now) / p), low, sx((r + s * reach) / p), height);
  pen.setLineDash([]);
}

function cross(x, y, arm) { line(x - arm, y - arm, x + arm, y + arm); line(x - arm, y + arm, x + arm, y - arm); }

function bodies(here) {
  const many = agents.length, named = [], radius = many > 400 ? 2.6 : many > 60 ? 3.6 : 5.5;
  pen.font = "600 12px system-ui, sans-serif"; pen.textAlign = "left";
  agents.forEach((agent, place) => {
    const spot = here[place], last = agent.t.length - 1;
    pen.fillStyle = pen.strokeStyle = colours[agent.hue];
    if (!spot) {
      if (agent.died && !flat && agent.t[last] < now) {
        pen.globalAlpha = 0.45; pen.lineWidth = 1.6;
        cross(sx(agent.x[last]), sy(agent.y[last]), radius * 0.8);
        pen.globalAlpha = 1;
      }
      return;
    }
    const x = sx(spot[0]), y = flat ? low : sy(spot[1]);
    pen.beginPath(); pen.arc(x, y, radius, 0, 2 * Math.PI);
    if (spot[2]) { pen.lineWidth = 1.4; pen.setLineDash([3, 2]); pen.stroke(); pen.setLineDash([]); }
    else { pen.fill(); pen.lineWidth = 1.5; pen.strokeStyle = look.paper; pen.stroke(); }
    if (many <= 24) {
      pen.fillStyle = look.ink;
      const name = agent.name.length > 24 ? agent.name.slice(0, 23) + "…" : agent.name;
      if (flat) {
        if (named.some(other => Math.abs(other - x) < 14)) return;
        named.push(x);
        pen.save(); pen.translate(x + 4, y - 10); pen.rotate(-0.6); pen.fillText(name, 0, 0); pen.restore();
      }
      else pen.fillText(name, x + radius + 4, y - radius);
    }
  });
}

function hover(here, moving) {
  let said = null, nearest = 16, x = 0, y = 0;
  const near = (a, b, most, text) => {
    const away = Math.hypot(a - mouse[0], b - mouse[1]);
    if (away < Math.min(nearest, most)) { nearest = away; said = text; x = a; y = b; }
  };
  if (mouse) here.forEach((spot, place) => {
    if (spot) near(sx(spot[0]), flat ? low : sy(spot[1]), 16, () => about(agents[place], spot));
  });
  if (mouse && !said) for (const each of moving) {
    const [a, b] = spotOf(each, gone(each, now));
    near(a, b, 9, () => data.whats[each.what] + "\n" + agents[each.source].name + " → " + agents[each.target].name);
  }
  tip.hidden = said === null;
  if (said === null) return;
  tip.textContent = said();
  tip.style.left = Math.max(4, Math.min(x + 12, width - tip.offsetWidth - 6)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 12, height - tip.offsetHeight - 6)) + "px";
  pen.strokeStyle = look.ink; pen.lineWidth = 2;
  pen.beginPath(); pen.arc(x, y, 9, 0, 2 * Math.PI); pen.stroke();
}

function about(agent, spot) {
  const places = [number(x0 + spot[0] * dx), number(y0 + spot[1] * dx)].slice(0, data.axes.length);
  const where = data.axes.map((name, place) => name + " = " + places[place]).join(", ");
  return agent.name + "\n" + where + (spot[2] ? ", jumping" : "");
}

function tick(time) {
  if (!playing) return;
  now += Math.min(0.1, (time - before) / 1000) * perSecond * Number(speed.value);
  before = time;
  if (now >= end) { now = end; set(false); }
  draw();
  if (playing) requestAnimationFrame(tick);
}

function set(on) {
  playing = on && end > 0;
  play.textContent = playing ? "❚❚ Pause" : "▶ Play";
  play.setAttribute("aria-pressed", String(playing));
  if (!playing) return;
  if (now >= end) now = 0;
  before = performance.now();
  requestAnimationFrame(tick);
}

function go(time) { now = Math.max(0, Math.min(end, time)); draw(); }

play.addEventListener("click", () => set(!playing));
slider.addEventListener("input", () => go(Number(slider.value) / 1000 * end));
for (const name of ["speed", "trails", "circles"]) byId(name).addEventListener("change", draw);
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target === speed) return;
  const step = end * (event.shiftKey ? 0.002 : 0.02), at = speed.selectedIndex;
  if (event.key === " ") { if (event.target.type === "checkbox") return; set(!playing); }
  else if (event.key === "ArrowLeft") go(now - step);
  else if (event.key === "ArrowRight") go(now + step);
  else if (event.key === "ArrowUp") { speed.selectedIndex = Math.min(at + 1, speed.options.length - 1); draw(); }
  else if (event.key === "ArrowDown") { speed.selectedIndex = Math.max(at - 1, 0); draw(); }
  else if (event.key === "Home") go(0);
  else if (event.key === "End") go(end);
  else return;
  event.preventDefault();
});
// A focused button would take the space key for a second click.
play.addEventListener("keyup", event => { if (event.key === " ") event.preventDefault(); });
for (const kind of ["pointermove", "pointerdown"]) canvas.addEventListener(kind, event => {
  const box = canvas.getBoundingClientRect();
  mouse = [event.clientX - box.left, event.clientY - box.top];
  if (!playing) draw();
});
canvas.addEventListener("pointerleave", () => { mouse = null; if (!playing) draw(); });
const fit = () => { measure(); draw(); };
new ResizeObserver(fit).observe(canvas);
night.addEventListener("change", fit);
fit();
set(!still.matches && agents.length > 0);
"""
