"use strict";
// What all views share: the run as the page has it, its times and colors, the moment and the window that are looked at.

const byId = id => document.getElementById(id);
const given = JSON.parse(byId("data").textContent);

// Make an element; texts are texts, whatever is in them.
function make(tag, attributes = {}, ...content) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes))
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  element.append(...content.map(each => each instanceof Node ? each : String(each ?? "")));
  return element;
}

// The numbers of names, in an order in which a10 comes behind a9.
function natural(names) {
  const {compare} = new Intl.Collator(undefined, {numeric: true});
  return names.map((_, number) => number).sort((a, b) => compare(names[a], names[b]));
}

// A text in which nothing is hidden, and nothing changes the direction of what is around it.
const plain = text => text.replace(/[^\P{C}\n\t]|[\u2028\u2029]/gu, each => `\\u${each.codePointAt(0).toString(16).padStart(4, "0")}`);

// --- Times, in nanoseconds ---

const LARGE = [[86400e9, "d"], [3600e9, "h"], [60e9, "min"]], LARGE_FROM = 120e9;
const SMALL = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

// Write a time with as many digits as tell it from one that is `step` away, in the unit of one that it is like: from
// two minutes on, in days, hours, minutes and seconds.
function timeText(time, step = 1, like = time) {
  if (time === null || time === undefined) return "";
  if (time === 0) return "0";
  const words = [];
  if (Math.abs(like) >= LARGE_FROM && step > 1) time = Math.round(time / step) * step;  // Otherwise there are 60 s in a minute.
  if (Math.abs(like) >= LARGE_FROM) for (const [size, unit] of LARGE) {
    const count = Math.floor(time / size);
    if (count) words.push(`${count} ${unit}`);
    time -= count * size;
  }
  if (time || !words.length) {
    const [size, unit] = SMALL.find(each => Math.abs(words.length ? LARGE_FROM : like) >= each[0]) || SMALL.at(-1);
    const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / Math.max(step, 1)) - 1e-9)));
    const text = (time / size).toFixed(digits);
    words.push((text.includes(".") ? text.replace(/\.?0+$/, "") : text) + " " + unit);
  }
  return words.join(" ");
}

// The least of 1, 2, 5 times a power of ten that isn't below a number.
function nice(least) {
  const power = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].map(each => each * power).find(each => each >= least * (1 - 1e-9));
}

// The same for times: a part of a minute, an hour or a day, and no less than a nanosecond.
const PARTS = [5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400].map(each => each * 1e9);
function niceTime(least) {
  if (least <= 2e9) return Math.max(1, nice(least));
  return PARTS.find(each => each >= least * (1 - 1e-9)) ?? nice(least / 86400e9) * 86400e9;
}

// --- A run, in columns that grow ---

const ARRAYS = {d: Float64Array, i: Int32Array, I: Uint32Array};
const SIZES = {d: 8, i: 4, I: 4};
const WAYS = 2 ** 20;
const ROWS_KEPT = 1000000, NOTES_KEPT = 100000;
const LOG = "worldline/log", STATE = "worldline/state", MEASURE = "worldline/measure";
const STEPS = new Set([STATE, MEASURE, "worldline/process", "worldline/record"]);  // Notes of what a member does by itself.
const UNDER_WAY = "still under way at the end";  // No loss: the run was over before it arrived.
const inked = [];  // Topics in the order in which they were first sent on, by any run: that is their color.

class Run {
  constructor(number, facts) {
    this.number = number; this.facts = facts; this.status = {phase: "loading"};
    this.members = []; this.topics = []; this.reasons = []; this.notes = []; this.stays = new Map(); this.losses = [];
    this.states = new Map(); this.held = new Map(); this.looks = 0; this.inks = [];
    this.columns = null; this.first = 0; this.count = 0; this.longest = 0; this.firstNote = 0;
    this.latest = 0; this.ended = 0;  // When something happened last, and when the last member left.
    this.lost = [];  // The rows of messages that were lost, counted from the first there ever was.
    this.ways = new Set();  // By which members messages have gone to which others: sender × WAYS + receiver.
    this.version = 0;
  }

  // What to ask for: all that comes behind what is here.
  have() {
    return {rows: this.first + this.count, notes: this.firstNote + this.notes.length, members: this.members.length,
      topics: this.topics.length, reasons: this.reasons.length};
  }

  // Take in news: a header in JSON and columns behind it.
  take(buffer) {
    const length = new DataView(buffer).getUint32(0, true);
    const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    this.facts = head.facts; this.status = head.status; this.losses = head.losses;
    this.tally();
    for (const name of ["members", "topics", "reasons"]) this[name].push(...head[name]);
    for (const [who, began, ended] of head.stays) { this.stays.set(who, [began, ended]); this.ended = Math.max(this.ended, ended ?? 0); }
    if (!this.columns)
      this.columns = Object.fromEntries(head.columns.map(([name, code]) => [name, new ARRAYS[code](1024)]));
    if (head.first > this.first + this.count) { this.first = head.first; this.count = 0; this.lost = []; }  // Cut off meanwhile.
    let offset = 4 + length;
    this.reserve(this.count + head.count);
    for (const [name, code] of head.columns) {
      this.columns[name].set(new ARRAYS[code](buffer, offset, head.count), this.count);
      offset += Math.ceil(head.count * SIZES[code] / 8) * 8;
    }
    const {sent, arrival, sender, receiver, topic, lost} = this.columns;
    this.underWay = this.reasons.indexOf(UNDER_WAY);
    for (let row = this.count; row < this.count + head.count; row++) {
      const happened = lost[row] < 0 ? arrival[row] : sent[row];
      if (happened > this.latest) this.latest = happened;
      if (arrival[row] - sent[row] > this.longest) this.longest = arrival[row] - sent[row];
      if (this.isLost(row)) this.lost.push(this.first + row);
      if (receiver[row] >= 0 && receiver[row] !== sender[row]) this.ways.add(sender[row] * WAYS + receiver[row]);
      if (this.inks[topic[row]] === undefined) this.ink(topic[row]);
    }
    this.count += head.count;
    this.firstNote = Math.max(this.firstNote, head.firstNote - this.notes.length);
    for (const [at, who, topic, number, text, kind] of head.notes) {
      const note = {at, who, topic: this.topics[topic], number, text, kind, ...noteParts(text)};
      if (note.topic === STATE && note.parts) { note.says = stateText(note.parts, this.states.get(who)); this.states.set(who, note.parts); }
      this.notes.push(note);
      if (at > this.latest) this.latest = at;
    }
    if (this.facts.live) this.cut();
    if (head.count || head.notes.length || head.members.length) this.version++;
    return head.more;
  }

  // Count how often each participant was seen to hold another.
  tally() {
    const {waits, phase} = this.status;
    if (phase !== "running" || !waits) return;
    this.looks++;
    for (const holder of new Set(waits.map(wait => wait.holder))) if (holder) this.held.set(holder, (this.held.get(holder) || 0) + 1);
  }

  // Of a run that goes on, forget the beginning, as its server does: a quarter at once, so that this is rare.
  cut() {
    if (this.count > ROWS_KEPT) {
      const gone = this.count - 0.75 * ROWS_KEPT;
      for (const column of Object.values(this.columns)) column.copyWithin(0, gone, this.count);
      this.first += gone; this.count -= gone;
      this.lost = this.lost.filter(row => row >= this.first);
    }
    if (this.notes.length > NOTES_KEPT) {
      const gone = this.notes.length - 0.75 * NOTES_KEPT;
      this.notes.splice(0, gone);
      this.firstNote += gone;
    }
  }

  reserve(count) {
    for (const [name, column] of Object.entries(this.columns)) {
      if (column.length >= count) continue;
      const larger = new column.constructor(Math.max(count, Math.ceil(1.5 * column.length)));
      larger.set(column.subarray(0, this.count));
      this.columns[name] = larger;
    }
  }

  ink(topic) {
    const text = this.topics[topic];
    if (!inked.includes(text)) inked.push(text);
    this.inks[topic] = inked.indexOf(text);
  }
  color(topic) { return colorOf(this.inks[topic]); }

  get end() { return Math.max(this.latest, this.ended, this.status.time || 0, 1); }

  // Some of the rows between two, `most` of them, and of those that were lost as many again; and one in how many that is.
  some(start, stop, most) {
    const [places, stride] = sampled(this.first + start, this.first + stop, most), rows = [];
    for (const place of places) if (stride === 1 || !this.isLost(place - this.first)) rows.push(place - this.first);
    if (stride > 1) {
      const place = row => lowest(this.lost.length, each => this.lost[each] >= this.first + row), from = place(start), to = place(stop);
      for (let each = from, step = Math.ceil((to - from) / most); each < to; each += step) rows.push(this.lost[each] - this.first);
    }
    return [rows, stride];
  }

  // The first row that was sent at a time or later.
  rowAt(time) { return lowest(this.count, row => this.columns.sent[row] >= time); }
  noteAt(time) { return lowest(this.notes.length, place => this.notes[place].at >= time); }
  isFault(note) { return note.kind !== ""; }
  isLost(row) { const loss = this.columns.lost[row]; return loss >= 0 && loss !== this.underWay; }
}

// Some of the numbers between two, `most` of them at most: one of each `stride`, a power of two, drawn by a hash. Every
// so many-th would miss all of a kind where kinds take turns. Those of one stride are there with smaller ones, too: who
// zooms in sees more, and nothing goes.
function sampled(start, stop, most) {
  let levels = 0;
  while ((stop - start) / 2 ** levels > most) levels++;
  const stride = 2 ** levels, found = [];
  for (let block = Math.floor(start / stride); block * stride < stop; block++) {
    let place = block;
    for (let level = levels; level > 0; level--) place = 2 * place + (Math.imul(place + 31 * level, 0x9e3779b1) >>> 31);
    if (place >= start && place < stop) found.push(place);
  }
  return [found, stride];
}

function lowest(count, holds) {
  let low = 0, high = count;
  while (low < high) { const middle = (low + high) >> 1; if (holds(middle)) high = middle; else low = middle + 1; }
  return low;
}

// A note's payload is mostly JSON: what it says in words, and its parts.
function noteParts(text) {
  let parts = null;
  try { parts = JSON.parse(text); } catch { return {says: plain(text), parts}; }
  if (parts && typeof parts === "object") return {says: plain(String(parts.text ?? parts.what ?? parts.kind ?? parts.process ?? parts.event ?? text)), parts};
  return {says: plain(String(parts)), parts: null};
}

// What a member holds, or what of it isn't as before.
function stateText(state, before = {}) {
  const value = each => each === null ? "–" : plain(typeof each === "object" ? JSON.stringify(each) : String(each));
  return Object.entries(state).filter(([name, each]) => !(name in before) || value(before[name]) !== value(each)).map(([name, each]) => `${plain(name.replaceAll("_", " "))} ${value(each)}`).join(", ");
}

// --- What is looked at: one moment, one window of time, for all views ---

const look = {now: 0, from: 0, to: 1, follow: true, selected: null, playing: 0};
const listeners = [];
const runs = given.shows.map((facts, number) => new Run(number, facts));
let frame = 0;

// Have everything drawn again, once, however often it is asked for.
function redraw() {
  if (!frame) frame = requestAnimationFrame(() => { frame = 0; for (const draw of listeners) draw(); });
}

const wholeEnd = () => Math.max(...runs.map(run => run.end));

function setWindow(from, to) {
  const whole = wholeEnd() * 1.02, least = 4;  // Nanoseconds: there is nothing between two.
  let length = Math.min(Math.max(to - from, least), whole * 1.2);
  from = Math.max(-0.1 * whole, Math.min(from, whole * 1.1 - length));
  look.from = from; look.to = from + length; look.follow = false;
  redraw();
}

function setNow(time, reveal = true) {
  look.now = Math.max(0, Math.min(time, wholeEnd()));
  const length = look.to - look.from;
  if (reveal && (look.now < look.from || look.now > look.to)) {
    look.from = look.now - length / 2; look.to = look.from + length; look.follow = false;
  }
  redraw();
}

function zoom(factor, around) { setWindow(around - (around - look.from) * factor, around + (look.to - around) * factor); }

// --- Colors ---

const DAY = ["#0072b2", "#d55e00", "#009e73", "#b4558f", "#b37700", "#2b8cc4", "#7a5c00", "#4a4a4a"];
const NIGHT = ["#4aa3df", "#ff8a3d", "#2fc79b", "#e39cc3", "#f0b429", "#8fd0f5", "#c9a94a", "#c5ccd3"];
const theme = {};

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["paper", "panel", "ink", "soft", "faint", "mark", "alarm", "good", "hold"])
    theme[name] = style.getPropertyValue("--" + name).trim();
  theme.colors = document.documentElement.classList.contains("dark") ? NIGHT : DAY;
  theme.ground = theme.paper + "c0";  // Lines shine through.
  theme.size = parseFloat(style.fontSize);
}
const colorOf = number => theme.colors[number % theme.colors.length];

// --- A canvas that has the size of its place ---

class Sheet {
  constructor(place, draw) {
    this.canvas = make("canvas", {tabindex: "0"});
    this.pen = this.canvas.getContext("2d");
    this.width = this.height = this.edge = 0;  // What is left of the edge is for names.
    place.append(this.canvas);
    new ResizeObserver(() => { this.measure(); redraw(); }).observe(this.canvas);
    listeners.push(() => { if (this.canvas.offsetParent !== null && this.width && this.height) { this.clear(); draw(this); } });
  }
  measure() {
    const area = this.canvas.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = area.width; this.height = area.height;
    this.canvas.width = Math.round(area.width * ratio); this.canvas.height = Math.round(area.height * ratio);
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }
  clear() {
    this.pen.globalAlpha = 1; this.pen.setLineDash([]);
    this.pen.fillStyle = theme.paper; this.pen.fillRect(0, 0, this.width, this.height);
    this.pen.font = `${0.85 * theme.size}px system-ui, sans-serif`;
  }
  line(a, b, c, d) { this.pen.beginPath(); this.pen.moveTo(a, b); this.pen.lineTo(c, d); this.pen.stroke(); }
  // Where a text begins that is to be inside of the sheet.
  begin(width, x, align) {
    const left = align === "left" ? x : align === "right" ? x - width : x - width / 2;
    return Math.max(this.edge + 2, Math.min(left, this.width - width - 2));
  }
  // Write a text at the first of some spots where it covers none of the boxes that are taken; say whether there is one.
  label(text, spots, color, taken, align = "left") {
    const width = this.pen.measureText(text).width, high = 0.8 * theme.size;
    for (const [x, y] of spots) {
      const left = this.begin(width, x, align), box = [left - 2, y - high, left + width + 2, y + 0.25 * theme.size];
      if (taken.some(other => overlap(box, other))) continue;
      taken.push(box);
      this.write(text, x, y, color, align);
      return true;
    }
    return false;
  }
  // Write a text on a ground of its own, so that it can be read on lines; a halo would take ten times as long.
  write(text, x, y, color = theme.ink, align = "left") {
    const {pen} = this, width = pen.measureText(text).width, left = this.begin(width, x, align);
    pen.fillStyle = theme.ground; pen.fillRect(left - 1, y - 0.75 * theme.size, width + 2, 0.95 * theme.size);
    pen.fillStyle = color; pen.fillText(text, left, y);
    return [left, left + width];
  }
}

// What colors stand for: in a corner of a view, samples with a text each.
class Legend {
  constructor(place, kind = "") { this.body = make("div", {class: `caption legend ${kind}`}); this.shown = ""; place.append(this.body); }
  // Entries are a text and a number, which is its color and shape; a text alone has none.
  show(entries) {
    const key = JSON.stringify([entries, theme.ink]);
    if (key === this.shown) return;
    this.shown = key;
    this.body.replaceChildren(...entries.map(([text, number]) => make("span", {}, ...(number === undefined ? [] : [this.sample(number)]), make("span", {}, text))));
  }
  sample(number) {
    const canvas = make("canvas", {width: 32, height: 32}), pen = canvas.getContext("2d");
    pen.scale(2, 2); pen.fillStyle = colorOf(number); outlined(pen, Math.floor(number / theme.colors.length), 8, 8, 5); pen.fill();
    return canvas;
  }
}

// The topics of a run that messages were sent on, as a legend has them.
const topicsShown = run => run.inks.flatMap((ink, topic) => ink === undefined ? [] : [[run.topics[topic], ink % theme.colors.length]]).slice(0, 10);

const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

// Draw an axis of time at the foot of a sheet, and the moment that is looked at.
function drawAxis(sheet, left, right, bottom) {
  const {pen} = sheet, length = look.to - look.from, scale = (right - left) / length;
  const step = niceTime(length / Math.max(2, (right - left) / (9 * theme.size)));
  const x = time => left + (time - look.from) * scale;
  pen.strokeStyle = theme.faint; pen.lineWidth = 1;
  for (let time = Math.ceil(look.from / step) * step; time <= look.to; time += step) {
    sheet.line(x(time), 0, x(time), bottom);
    if (time >= 0) sheet.write(timeText(Math.round(time), step, look.to), x(time), bottom + 1.2 * theme.size, theme.soft, "center");
  }
  if (look.now >= look.from && look.now <= look.to) {
    pen.strokeStyle = theme.mark; pen.lineWidth = 1.5; sheet.line(x(look.now), 0, x(look.now), bottom);
  }
  return x;
}

// Let a sheet be panned and zoomed in time: wheel, drag, pinch.
function navigable(sheet, left, clicked, hovered) {
  const {canvas} = sheet, touching = new Map();
  const timeAt = px => look.from + (px - left()) / Math.max(1, sheet.width - left()) * (look.to - look.from);
  const spot = event => { const area = canvas.getBoundingClientRect(); return [event.clientX - area.left, event.clientY - area.top]; };
  let moved = 0;
  canvas.addEventListener("wheel", event => {
    event.preventDefault();
    const length = look.to - look.from, [x] = spot(event);
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const shift = (event.deltaX || event.deltaY) / sheet.width * length;
      setWindow(look.from + shift, look.to + shift);
    } else zoom(Math.exp(event.deltaY * 0.0015), timeAt(x));
  }, {passive: false});
  canvas.addEventListener("pointerdown", event => { canvas.setPointerCapture(event.pointerId); touching.set(event.pointerId, spot(event)); moved = 0; });
  canvas.addEventListener("pointermove", event => {
    const here = spot(event), before = touching.get(event.pointerId);
    if (!before) { hovered(...here, timeAt(here[0])); return; }
    const perPixel = (look.to - look.from) / Math.max(1, sheet.width - left());
    moved += Math.abs(here[0] - before[0]) + Math.abs(here[1] - before[1]);
    if (touching.size === 1 && moved > 3) setWindow(look.from - (here[0] - before[0]) * perPixel, look.to - (here[0] - before[0]) * perPixel);
    else if (touching.size === 2) {
      const other = [...touching].find(([id]) => id !== event.pointerId)[1];
      const was = Math.max(10, Math.abs(before[0] - other[0])), is = Math.max(10, Math.abs(here[0] - other[0]));
      zoom(was / is, timeAt((here[0] + other[0]) / 2));
    }
    touching.set(event.pointerId, here);
  });
  const release = event => {
    if (touching.delete(event.pointerId) && event.type === "pointerup" && moved <= 3) { const here = spot(event); clicked(...here, timeAt(here[0])); }
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", () => hovered(-1, -1, null));
  canvas.addEventListener("dblclick", event => zoom(0.4, timeAt(spot(event)[0])));
}

// --- Questions to the server; a page that is a file has the answers in it ---

async function ask(what, parameters = {}) {
  if (given.packed) return packedAnswer(what, parameters);
  const answer = await fetch(`${what}?${new URLSearchParams(parameters)}`, {cache: "no-store"});
  if (answer.ok) return what === "news" ? answer.arrayBuffer() : answer.json();
  throw new Error(answer.status === 409 ? (await answer.json()).error : await answer.text());
}

// What is packed into a file is compressed.
async function unpack() {
  const bytes = Uint8Array.from(atob(given.packed), each => each.charCodeAt(0));
  given.packed = await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
}

function packedAnswer(what, {show = 0, row, topic, field}) {
  const pack = given.packed[show];
  if (what === "news") return Uint8Array.from(atob(pack.news), each => each.charCodeAt(0)).buffer;
  if (what === "fields" || what === "scene") return pack[what];
  const found = what === "message" ? pack.messages[row] : pack.signals[`${topic} ${field}`];
  if (found === undefined) throw new Error("this file doesn't have it: open the recording with `worldline view`");
  return found;
}

async function order(name, more = {}) {
  const answer = await fetch("order", {method: "POST", headers: {"Content-Type": "application/json"},
    body: JSON.stringify({order: name, ...more})});
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said.said;
}
