// A chart: panels of lines over one horizontal axis, of which all show the same part. What it can't draw is a picture.

const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3]];
const EDGE = {left: 62, right: 12, top: 8, bottom: 24};

function extent(values) {
  let low = Infinity, high = -Infinity;
  for (const value of values) if (value !== null && value !== undefined) { low = Math.min(low, value); high = Math.max(high, value); }
  return low <= high ? (low < high ? [low, high] : [low - 0.5, high + 0.5]) : [0, 1];
}

// Write a number with the digits that tell it from one that is a step away.
function numberText(value, step) {
  if (value !== 0 && (Math.abs(value) >= 1e7 || step < 1e-6)) return value.toPrecision(4).replace("-", "−");
  return value.toFixed(Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)))).replace("-", "−");
}
const valueText = value => value === null || value === undefined ? "" : String(Number(value.toPrecision(6))).replace("-", "−");

class Chart {
  constructor(place, {subtitle, x, ticks, panels}) {
    this.x = x; this.ticks = ticks;
    byId("figures").textContent = subtitle;
    if (!panels.length) { place.append(byId("picture")); return; }
    byId("picture")?.remove();
    const ends = panels.flatMap(panel => panel.lines).flatMap(line => [line.x[0], line.x[line.x.length - 1]]);
    this.whole = extent(ends); this.seen = [...this.whole];
    this.pointer = this.dragged = null;  // Where the mouse is, and from where it is dragged, in units of the axis.
    this.home = make("div", {class: "chart"});
    place.append(this.home);
    this.panels = panels.map(panel => new ChartPanel(this, panel, panels.length === 1 ? 420 : 220));
    this.axis = make("p", {class: "note"});
    this.home.append(this.axis, make("p", {class: "note"}, "Drag to zoom, double-click to go back, ← → to move; click a name to hide its line."));
    listeners.push(() => this.draw());
    new ResizeObserver(redraw).observe(place);
  }

  show(low, high) {
    const [first, last] = this.whole, span = Math.min(Math.max(high - low, (last - first) * 1e-6), last - first);
    const start = Math.min(Math.max(low, first), last - span);
    this.seen = [start, start + span];
    redraw();
  }

  draw() {
    for (const each of this.panels) each.draw();
    const at = this.pointer === null ? "" : this.ticks.length ? this.ticks[Math.round(this.pointer)] || "" : valueText(this.pointer);
    this.axis.textContent = at ? `${this.x}: ${at}` : this.x;
  }
}

class ChartPanel {
  constructor(chart, panel, height) {
    this.chart = chart; this.panel = panel; this.height = height; this.hidden = new Set();
    this.outputs = panel.lines.map(() => make("output"));
    this.samples = panel.lines.map(() => make("canvas", {class: "sample", width: 44, height: 8}));
    this.canvas = make("canvas", {tabindex: "0", role: "img", height, "aria-label": `${panel.title || document.title}: ${panel.lines.map(line => line.label).join(", ")}`});
    this.canvas.style.height = `${height}px`;
    chart.home.append(...(panel.title ? [make("h2", {}, panel.title)] : []), make("ul", {}, ...panel.lines.map((line, number) => {
      const button = make("button", {type: "button", "aria-pressed": "true", onclick: () => {
        if (!this.hidden.delete(number)) this.hidden.add(number);
        button.setAttribute("aria-pressed", String(!this.hidden.has(number)));
        redraw();
      }}, this.samples[number], make("span", {}, line.label), this.outputs[number]);
      return make("li", {}, button);
    })), this.canvas);
    this.listen();
  }

  listen() {
    const {canvas, chart} = this, at = event => this.valueAt(event.clientX - canvas.getBoundingClientRect().left);
    canvas.addEventListener("pointermove", event => { chart.pointer = at(event); redraw(); });
    canvas.addEventListener("pointerleave", () => { if (chart.dragged === null) { chart.pointer = null; redraw(); } });
    canvas.addEventListener("pointerdown", event => {
      chart.pointer = at(event);
      if (event.pointerType !== "touch") { chart.dragged = at(event); canvas.setPointerCapture(event.pointerId); }
      redraw();
    });
    canvas.addEventListener("pointerup", event => {
      const from = chart.dragged, to = at(event);
      chart.dragged = null;
      if (from !== null && Math.abs(this.placeOf(to) - this.placeOf(from)) > 4) chart.show(Math.min(from, to), Math.max(from, to));
      redraw();
    });
    canvas.addEventListener("dblclick", () => chart.show(...chart.whole));
    canvas.addEventListener("wheel", event => {
      if (!event.ctrlKey && !event.metaKey) return;  // The page itself is scrolled by it.
      event.preventDefault();
      const middle = at(event), factor = Math.exp(Math.sign(event.deltaY) * 0.2), [low, high] = chart.seen;
      chart.show(middle - (middle - low) * factor, middle + (high - middle) * factor);
    }, {passive: false});
    canvas.addEventListener("keydown", event => {
      const [low, high] = chart.seen, span = high - low;
      const moves = {ArrowLeft: [-0.2, -0.2], ArrowRight: [0.2, 0.2], "+": [0.2, -0.2], "-": [-0.3, 0.3]};
      if (event.key in moves) { chart.show(low + moves[event.key][0] * span, high + moves[event.key][1] * span); event.preventDefault(); }
      else if (event.key === "0" || event.key === "Home") chart.show(...chart.whole);
    });
  }

  placeOf(x) { const [low, high] = this.chart.seen; return EDGE.left + (x - low) / (high - low) * (this.width - EDGE.left - EDGE.right); }
  valueAt(place) { const [low, high] = this.chart.seen; return low + (place - EDGE.left) / (this.width - EDGE.left - EDGE.right) * (high - low); }
  // The place of the last point that isn't behind x; -1 if all are.
  before(line, x) { return lowest(line.x.length, place => line.x[place] > x) - 1; }
  // The points of a line that can be seen, with one more at either side.
  part(line) { const [low, high] = this.chart.seen; return [Math.max(0, this.before(line, low)), Math.min(line.x.length, this.before(line, high) + 2)]; }
  colorOf(line) { return colorOf(line.color); }
  dashOf(line) { return DASHES[(line.dash + Math.floor(line.color / theme.colors.length)) % DASHES.length]; }

  heights() {
    const {levels, limits, lines} = this.panel, seen = [];
    if (levels.length) return [-0.3, levels.length - 0.7];
    if (limits) return limits;
    lines.forEach((line, number) => {
      if (this.hidden.has(number)) return;
      const part = this.part(line);
      for (const values of [line.y, line.low, line.high]) if (values) seen.push(...extent(values.slice(...part)));
    });
    const [low, high] = extent(seen), margin = (high - low) * 0.06;
    return [low - margin, high + margin];
  }

  draw() {
    const {canvas, height} = this, ratio = devicePixelRatio || 1, pen = this.pen = canvas.getContext("2d");
    this.width = canvas.clientWidth;
    canvas.width = Math.round(this.width * ratio); canvas.height = Math.round(height * ratio);
    pen.scale(ratio, ratio);
    pen.font = `${0.75 * theme.size}px system-ui, sans-serif`;
    const [low, high] = this.heights(), bottom = height - EDGE.bottom;
    this.y = value => bottom - (value - low) / (high - low) * (bottom - EDGE.top);
    this.axes(low, high, bottom);
    pen.save(); pen.beginPath(); pen.rect(EDGE.left, 0, this.width - EDGE.left - EDGE.right, bottom + 1); pen.clip();
    this.panel.lines.forEach((line, number) => { if (!this.hidden.has(number)) this.line(line); });
    const {dragged, pointer} = this.chart;
    if (dragged !== null) {
      pen.fillStyle = theme.mark; pen.globalAlpha = 0.12;
      pen.fillRect(this.placeOf(dragged), EDGE.top, this.placeOf(pointer) - this.placeOf(dragged), bottom - EDGE.top);
      pen.globalAlpha = 1;
    }
    this.readings(bottom);
    pen.restore();
  }

  stroke(a, b, c, d) { this.pen.beginPath(); this.pen.moveTo(a, b); this.pen.lineTo(c, d); this.pen.stroke(); }

  axes(low, high, bottom) {
    const {pen} = this, {levels} = this.panel, {ticks, seen} = this.chart;
    const between = (from, to, most) => { const step = nice((to - from) / most), found = []; for (let n = Math.ceil(from / step - 1e-9); n * step <= to + step * 1e-9; n++) found.push(n * step); return [found, step]; };
    pen.strokeStyle = theme.faint; pen.fillStyle = theme.soft; pen.lineWidth = 1;
    pen.textBaseline = "middle"; pen.textAlign = "right";
    const [ys, yStep] = levels.length ? [levels.map((_, place) => place), 1] : between(low, high, this.height / 36);
    for (const value of ys) {
      const place = Math.round(this.y(value)) + 0.5;
      this.stroke(EDGE.left, place, this.width - EDGE.right, place);
      pen.fillText(fitted(pen, levels.length ? levels[value] : numberText(value, yStep), EDGE.left - 8), EDGE.left - 6, place);
    }
    pen.textBaseline = "top"; pen.textAlign = "center";
    const [xs, xStep] = ticks.length ? [ticks.map((_, place) => place), 1] : between(...seen, this.width / 90);
    for (const value of xs) {
      if (value < seen[0] || value > seen[1]) continue;
      const place = Math.round(this.placeOf(value)) + 0.5;
      this.stroke(place, EDGE.top, place, bottom);
      pen.fillText(ticks.length ? ticks[value] : numberText(value, xStep), place, bottom + 5);
    }
    pen.strokeStyle = theme.soft;
    this.stroke(EDGE.left + 0.5, EDGE.top, EDGE.left + 0.5, bottom + 0.5); this.stroke(EDGE.left, bottom + 0.5, this.width - EDGE.right, bottom + 0.5);
  }

  line(line) {
    const {pen} = this, [first, last] = this.part(line);
    pen.strokeStyle = pen.fillStyle = this.colorOf(line);
    if (line.low) {
      pen.globalAlpha = 0.16; pen.beginPath();
      for (let i = first; i < last; i++) pen.lineTo(this.placeOf(line.x[i]), this.y(line.high[i]));
      for (let i = last - 1; i >= first; i--) pen.lineTo(this.placeOf(line.x[i]), this.y(line.low[i]));
      pen.fill(); pen.globalAlpha = 1;
    }
    if (line.style !== "points") {
      pen.lineWidth = 1.6; pen.lineJoin = "round"; pen.setLineDash(this.dashOf(line)); pen.beginPath();
      let isDown = false, height = 0;
      for (let i = first; i < last; i++) {
        if (line.y[i] === null) { isDown = false; continue; }
        const x = this.placeOf(line.x[i]), y = this.y(line.y[i]);
        if (isDown && line.style === "steps") pen.lineTo(x, height);
        if (isDown) pen.lineTo(x, y); else pen.moveTo(x, y);
        isDown = true; height = y;
      }
      pen.stroke(); pen.setLineDash([]);
    }
    if (line.style === "points" || last - first === 1 || line.marked && last - first <= 60)
      for (let i = first; i < last; i++) if (line.y[i] !== null) { pen.beginPath(); pen.arc(this.placeOf(line.x[i]), this.y(line.y[i]), 2.4, 0, 7); pen.fill(); }
  }

  // What the lines are at the mouse: steps hold their value, others show their nearest point.
  readings(bottom) {
    const {pen} = this, {pointer} = this.chart, {lines, levels} = this.panel;
    if (pointer !== null) { pen.strokeStyle = theme.soft; pen.setLineDash([3, 3]); this.stroke(this.placeOf(pointer), EDGE.top, this.placeOf(pointer), bottom); pen.setLineDash([]); }
    lines.forEach((line, number) => {
      const on = this.samples[number].getContext("2d");
      on.clearRect(0, 0, 44, 8); on.strokeStyle = this.colorOf(line); on.lineWidth = 4; on.setLineDash(this.dashOf(line).map(each => 1.6 * each));
      on.beginPath(); on.moveTo(0, 4); on.lineTo(44, 4); on.stroke();
      let place = pointer === null || this.hidden.has(number) ? -1 : this.before(line, pointer);
      if (pointer !== null && !this.hidden.has(number) && line.style !== "steps" && place + 1 < line.x.length && (place < 0 || line.x[place + 1] - pointer < pointer - line.x[place])) place++;
      const value = place < 0 ? null : line.y[place];
      if (value !== null) { pen.fillStyle = this.colorOf(line); pen.beginPath(); pen.arc(this.placeOf(line.style === "steps" ? pointer : line.x[place]), this.y(value), 3.5, 0, 7); pen.fill(); }
      this.outputs[number].textContent = value !== null && levels.length ? levels[value] : valueText(value);
    });
  }
}
