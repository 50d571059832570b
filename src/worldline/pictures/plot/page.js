"use strict";
// Draws panels of lines over one horizontal axis. All of them show the same part of it, from `view[0]` to `view[1]`.

const data = JSON.parse(document.getElementById("data").textContent);
const home = document.getElementById("plots");
const night = matchMedia("(prefers-color-scheme: dark)");
const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3]];
const LEFT = 62, RIGHT = 12, TOP = 8, BOTTOM = 22;

const every = data.panels.flatMap((panel) => panel.lines);
const whole = extent(every.flatMap((line) => [line.x[0], line.x[line.x.length - 1]]));
let view = whole.slice();
let pointer = null; // Where the mouse is, in units of the axis.
let dragged = null; // From where it is dragged.

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (value === null || value === undefined) continue;
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? (low < high ? [low, high] : [low - 0.5, high + 0.5]) : [0, 1];
}

function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}

function colorOf(line) {
  const palette = night.matches ? data.night : data.day;
  return palette[line.color % palette.length];
}

function dashOf(line) {
  return DASHES[(line.dash + Math.floor(line.color / data.day.length)) % DASHES.length];
}

// The place of the last point that isn't behind x; -1 if all are.
function before(xs, x) {
  let low = 0, high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle + 1; else high = middle;
  }
  return low - 1;
}

function ticksBetween(low, high, most) {
  const span = high - low;
  const power = Math.pow(10, Math.floor(Math.log10(span / most)));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((each) => span / each <= most);
  const found = [];
  for (let count = Math.ceil(low / step - 1e-9); count * step <= high + step * 1e-9; count++) found.push(count * step);
  return [found, step];
}

function written(value, step) {
  if (value !== 0 && (Math.abs(value) >= 1e7 || step < 1e-6)) return value.toPrecision(4).replace("-", "−");
  const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
  return value.toFixed(digits).replace("-", "−");
}

function told(value) {
  return value === null || value === undefined ? "" : String(Number(value.toPrecision(6))).replace("-", "−");
}

class PanelView {
  constructor(panel, isLast) {
    this.panel = panel;
    this.isLast = isLast;
    this.hidden = new Set();
    const section = document.createElement("section");
    if (panel.title) {
      const title = document.createElement("h2");
      title.textContent = panel.title;
      section.append(title);
    }
    const legend = document.createElement("ul");
    this.outputs = panel.lines.map((line, number) => this.entry(legend, line, number));
    this.canvas = document.createElement("canvas");
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", `${panel.title || document.title}: ${panel.lines.map((l) => l.label).join(", ")}`);
    this.height = data.panels.length === 1 ? 420 : 220;
    this.canvas.style.height = `${this.height}px`;
    section.append(legend, this.canvas);
    home.append(section);
    this.listen();
  }

  entry(legend, line, number) {
    const item = document.createElement("li"), button = document.createElement("button");
    const sample = document.createElement("canvas"), name = document.createElement("span");
    const output = document.createElement("output");
    sample.width = 44; sample.height = 8;
    sample.style.cssText = "width:22px;height:4px;cursor:inherit";
    name.textContent = line.label;
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(sample, name, output);
    button.addEventListener("click", () => {
      if (!this.hidden.delete(number)) this.hidden.add(number);
      button.setAttribute("aria-pressed", String(!this.hidden.has(number)));
      draw();
    });
    item.append(button);
    legend.append(item);
    output.sample = sample;
    return output;
  }

  listen() {
    const canvas = this.canvas;
    const at = (event) => this.valueAt(event.clientX - canvas.getBoundingClientRect().left);
    canvas.addEventListener("pointermove", (event) => { pointer = at(event); draw(); });
    canvas.addEventListener("pointerleave", () => { if (dragged === null) { pointer = null; draw(); } });
    canvas.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "touch") { pointer = at(event); draw(); return; }
      dragged = at(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", (event) => {
      const end = at(event);
      const pixels = dragged === null ? 0 : Math.abs(this.placeOf(end) - this.placeOf(dragged));
      if (pixels > 4) show(Math.min(dragged, end), Math.max(dragged, end));
      dragged = null;
      draw();
    });
    canvas.addEventListener("dblclick", () => show(...whole));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && Math.abs(event.deltaX) > Math.abs(event.deltaY)) return;
      event.preventDefault();
      const middle = at(event), factor = Math.exp(Math.sign(event.deltaY) * 0.2);
      show(middle - (middle - view[0]) * factor, middle + (view[1] - middle) * factor);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const span = view[1] - view[0];
      const moves = { ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "-": [-0.3, 0.3] };
      if (event.key in moves) {
        show(view[0] + moves[event.key][0] * span, view[1] + moves[event.key][1] * span);
        event.preventDefault();
      } else if (event.key === "0" || event.key === "Home") show(...whole);
    });
  }

  placeOf(x) {
    return LEFT + (x - view[0]) / (view[1] - view[0]) * (this.width - LEFT - RIGHT);
  }

  valueAt(place) {
    return view[0] + (place - LEFT) / (this.width - LEFT - RIGHT) * (view[1] - view[0]);
  }

  // The points of a line that can be seen, with one more at either side.
  part(line) {
    return [Math.max(0, before(line.x, view[0])), Math.min(line.x.length, before(line.x, view[1]) + 2)];
  }

  heights() {
    if (this.panel.levels.length) return [-0.3, this.panel.levels.length - 0.7];
    if (this.panel.limits) return this.panel.limits;
    const seen = [];
    this.panel.lines.forEach((line, number) => {
      if (this.hidden.has(number)) return;
      const [first, last] = this.part(line);
      for (const values of [line.y, line.low, line.high]) if (values) seen.push(...extent(values.slice(first, last)));
    });
    const [low, high] = extent(seen), margin = (high - low) * 0.06;
    return [low - margin, high + margin];
  }

  draw() {
    const canvas = this.canvas, ratio = devicePixelRatio || 1;
    this.width = canvas.clientWidth;
    canvas.width = Math.round(this.width * ratio);
    canvas.height = Math.round(this.height * ratio);
    const pen = this.pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "11px system-ui, sans-serif";
    const [low, high] = this.heights(), bottom = this.height - BOTTOM;
    this.y = (value) => bottom - (value - low) / (high - low) * (bottom - TOP);
    this.axes(low, high, bottom);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, this.width - LEFT - RIGHT, bottom + 1);
    pen.clip();
    this.panel.lines.forEach((line, number) => { if (!this.hidden.has(number)) this.line(line); });
    if (dragged !== null && pointer !== null) {
      pen.fillStyle = css("--accent");
      pen.globalAlpha = 0.12;
      pen.fillRect(this.placeOf(dragged), TOP, this.placeOf(pointer) - this.placeOf(dragged), bottom - TOP);
      pen.globalAlpha = 1;
    }
    this.readings(bottom);
    pen.restore();
  }

  axes(low, high, bottom) {
    const pen = this.pen;
    pen.strokeStyle = css("--faint");
    pen.fillStyle = css("--soft");
    pen.lineWidth = 1;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const levels = this.panel.levels;
    const [ys, yStep] = levels.length ? [levels.map((_, place) => place), 1] : ticksBetween(low, high, this.height / 36);
    for (const value of ys) {
      const place = Math.round(this.y(value)) + 0.5;
      pen.beginPath(); pen.moveTo(LEFT, place); pen.lineTo(this.width - RIGHT, place); pen.stroke();
      const text = levels.length ? levels[value] : written(value, yStep);
      pen.fillText(text.length > 10 ? `${text.slice(0, 9)}…` : text, LEFT - 6, place);
    }
    pen.textBaseline = "top";
    pen.textAlign = "center";
    const [xs, xStep] = data.ticks.length ? [data.ticks.map((_, place) => place), 1] : ticksBetween(...view, this.width / 90);
    for (const value of xs) {
      if (value < view[0] || value > view[1]) continue;
      const place = Math.round(this.placeOf(value)) + 0.5;
      pen.beginPath(); pen.moveTo(place, TOP); pen.lineTo(place, bottom); pen.stroke();
      pen.fillText(data.ticks.length ? data.ticks[value] : written(value, xStep), place, bottom + 5);
    }
    pen.strokeStyle = css("--edge");
    pen.beginPath(); pen.moveTo(LEFT + 0.5, TOP); pen.lineTo(LEFT + 0.5, bottom + 0.5);
    pen.lineTo(this.width - RIGHT, bottom + 0.5); pen.stroke();
  }

  line(line) {
    const pen = this.pen, [first, last] = this.part(line), color = colorOf(line);
    pen.strokeStyle = pen.fillStyle = color;
    if (line.low) {
      pen.globalAlpha = 0.16;
      pen.beginPath();
      for (let i = first; i < last; i++) pen.lineTo(this.placeOf(line.x[i]), this.y(line.high[i]));
      for (let i = last - 1; i >= first; i--) pen.lineTo(this.placeOf(line.x[i]), this.y(line.low[i]));
      pen.fill();
      pen.globalAlpha = 1;
    }
    const dots = line.style === "points" || last - first === 1 || (line.marked && last - first <= 60);
    if (line.style !== "points") {
      pen.lineWidth = 1.6;
      pen.lineJoin = "round";
      pen.setLineDash(dashOf(line));
      pen.beginPath();
      let isDown = false, height = 0;
      for (let i = first; i < last; i++) {
        if (line.y[i] === null) { isDown = false; continue; }
        const x = this.placeOf(line.x[i]), y = this.y(line.y[i]);
        if (isDown && line.style === "steps") pen.lineTo(x, height);
        if (isDown) pen.lineTo(x, y); else pen.moveTo(x, y);
        isDown = true;
        height = y;
      }
      pen.stroke();
      pen.setLineDash([]);
    }
    if (dots) {
      for (let i = first; i < last; i++) {
        if (line.y[i] === null) continue;
        pen.beginPath(); pen.arc(this.placeOf(line.x[i]), this.y(line.y[i]), 2.4, 0, 7); pen.fill();
      }
    }
  }

  // What the lines are at the mouse: steps hold their value, others show their nearest point.
  readings(bottom) {
    const pen = this.pen;
    if (pointer !== null) {
      pen.strokeStyle = css("--soft");
      pen.setLineDash([3, 3]);
      pen.beginPath(); pen.moveTo(this.placeOf(pointer), TOP); pen.lineTo(this.placeOf(pointer), bottom); pen.stroke();
      pen.setLineDash([]);
    }
    this.panel.lines.forEach((line, number) => {
      const output = this.outputs[number];
      this.drawSample(output.sample, line);
      let value = null;
      if (pointer !== null && !this.hidden.has(number)) {
        let place = before(line.x, pointer);
        const next = place + 1;
        if (line.style !== "steps" && next < line.x.length && (place < 0 || line.x[next] - pointer < pointer - line.x[place])) place = next;
        if (place >= 0) {
          value = line.y[place];
          if (value !== null) {
            pen.fillStyle = colorOf(line);
            const x = line.style === "steps" ? pointer : line.x[place];
            pen.beginPath(); pen.arc(this.placeOf(x), this.y(value), 3.5, 0, 7); pen.fill();
          }
        }
      }
      output.textContent = value !== null && this.panel.levels.length ? this.panel.levels[value] : told(value);
    });
  }

  drawSample(canvas, line) {
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, 44, 8);
    pen.strokeStyle = colorOf(line);
    pen.lineWidth = 4;
    pen.setLineDash(dashOf(line).map((each) => each * 1.6));
    pen.beginPath(); pen.moveTo(0, 4); pen.lineTo(44, 4); pen.stroke();
  }
}

const views = data.panels.map((panel, place) => new PanelView(panel, place === data.panels.length - 1));
const axis = document.createElement("section");
axis.className = "note";
home.append(axis);

function show(low, high) {
  const span = Math.max(high - low, (whole[1] - whole[0]) * 1e-6);
  const start = Math.min(Math.max(low, whole[0]), whole[1] - Math.min(span, whole[1] - whole[0]));
  view = [start, Math.min(start + span, whole[1])];
  draw();
}

let isDue = false;
function draw() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(() => {
    isDue = false;
    for (const each of views) each.draw();
    const place = pointer === null ? "" : data.ticks.length ? data.ticks[Math.round(pointer)] || "" : told(pointer);
    axis.textContent = place ? `${data.x}: ${place}` : data.x;
  });
}

addEventListener("resize", draw);
night.addEventListener("change", draw);
draw();
