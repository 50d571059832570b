// Signals: fields of messages over time, on the same window as the diagram.

const REFRESH_SHARE = 0.05;

class Signals {
  constructor(place) {
    this.tree = make("div", {class: "fields"}, "reading…");
    this.sheet = new Sheet(place, () => this.draw());
    this.sheet.canvas.classList.add("beside");
    place.append(this.tree);
    navigable(this.sheet, () => this.left, (x, y, time) => setNow(time), (x, y) => { this.mouse = x < 0 ? null : [x, y]; redraw(); });
    this.left = 60; this.asked = -1; this.picked = new Map(); this.due = 0;
    this.filter = make("input", {type: "search", placeholder: "find a field", "aria-label": "find a field"});
  }

  // List the fields anew, if there is more to look at.
  async open() {
    const version = runs.reduce((sum, run) => sum + run.topics.length + Math.ceil(Math.log2(1 + run.count + run.notes.length)), 0) + (runs.every(run => run.status.phase === "over") ? 0.5 : 0);
    if (version === this.asked) return;
    this.asked = version;
    const found = {};
    let best = null;
    for (const run of runs) {
      const {fields, lively} = await ask("fields", {show: run.number});
      for (const topic in fields) found[topic] = [...new Set([...(found[topic] || []), ...fields[topic]])];
      best ??= lively;
    }
    this.tree.textContent = "";
    this.hasNone = this.tree.hidden = !Object.keys(found).length;
    this.sheet.canvas.classList.toggle("beside", !this.hasNone);
    if (!this.isTouched && !this.hasNone) {  // Nothing to see is no way to begin: what members measure last is mostly a result.
      const first = found[MEASURE] ? [MEASURE, found[MEASURE].at(-1)] : best ?? Object.entries(found).map(([topic, fields]) => [topic, fields[0]])[0];
      if (!this.picked.has(JSON.stringify(first))) { this.picked.clear(); this.pick(...first, true); }
    }
    const labels = [];
    for (const [topic, fields] of Object.entries(found))
      this.tree.append(make("details", {open: Object.keys(found).length <= 6}, make("summary", {}, topic), ...fields.map(field => {
        const box = make("input", {type: "checkbox", onchange: () => { this.isTouched = true; this.pick(topic, field, box.checked); }});
        box.checked = this.picked.has(JSON.stringify([topic, field]));
        labels.push([`${topic}.${field}`.toLowerCase(), make("label", {}, box, ` ${field || "(value)"}`)]);
        return labels.at(-1)[1];
      })));
    if (labels.length > 20) {
      this.filter.oninput = () => { const text = this.filter.value.trim().toLowerCase(); for (const [name, label] of labels) label.hidden = !name.includes(text); };
      this.filter.oninput();
      this.tree.prepend(this.filter);
    }
    redraw();
  }

  // Draw a field, or no longer; what is drawn of it stays until there is more.
  async pick(topic, field, on) {
    const key = JSON.stringify([topic, field]), lines = [];
    if (on) this.picked.set(key, {topic, field, lines: this.picked.get(key)?.lines ?? lines}); else this.picked.delete(key);
    if (on) for (const run of runs) {
      try {
        const found = await ask("signal", {show: run.number, topic, field});
        for (const {who, times, values} of found.lines)
          lines.push({run, topic, field, name: `${topic}${field ? "." + field : ""}  ${who}${runs.length > 1 ? "  " + (run.facts.file || "") : ""}`, times, values});
      } catch (error) { if (runs.length === 1) inspect({title: topic, rows: [], payload: error.message}); }
    }
    if (this.picked.has(key)) this.picked.get(key).lines = lines;
    redraw();
  }

  get lines() { return [...this.picked.values()].flatMap(each => each.lines); }

  // Ask again what the lines are, for a small part of all time: a run that goes on is to go on.
  async refresh() {
    const began = performance.now();
    if (began < this.due) return;
    for (const {topic, field} of [...this.picked.values()]) await this.pick(topic, field, true);
    const ended = performance.now();
    this.due = ended + (ended - began) / REFRESH_SHARE;
  }

  draw() {
    const {sheet, lines} = this, {pen, width, height} = sheet, bottom = height - 2 * theme.size;
    if (!lines.length) { sheet.write(this.hasNone ? "no message has a number in it that can be read" : this.picked.size ? "reading…" : "pick a field", width / 2, height / 2, theme.soft, "center"); return; }
    let low = Infinity, high = -Infinity;
    for (const {times, values} of lines) {
      const start = Math.max(0, lowest(times.length, place => times[place] >= look.from) - 1);
      const stop = Math.min(times.length, lowest(times.length, place => times[place] > look.to) + 1);
      for (let place = start; place < stop; place++) { low = Math.min(low, values[place]); high = Math.max(high, values[place]); }
    }
    if (low > high) { low = 0; high = 1; }
    if (low === high) { low -= 0.5; high += 0.5; }
    const margin = 0.06 * (high - low), step = nice((high - low) / Math.max(2, bottom / (3 * theme.size)));
    low -= margin; high += margin;
    const y = value => bottom - (value - low) / (high - low) * (bottom - 8);
    const digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step))));
    this.left = Math.ceil(Math.max(...[low, high].map(value => pen.measureText(value.toFixed(digits)).width))) + 14;
    const x = drawAxis(sheet, this.left, width, bottom);
    for (let value = Math.ceil(low / step) * step; value <= high; value += step) {
      pen.strokeStyle = theme.faint; pen.lineWidth = 1; sheet.line(this.left, y(value), width, y(value));
      sheet.write(value.toFixed(digits), this.left - 6, y(value) + 4, theme.soft, "right");
    }
    pen.save(); pen.beginPath(); pen.rect(this.left, 0, width - this.left, bottom); pen.clip();
    lines.forEach((line, number) => {
      const {times, values} = line, start = Math.max(0, lowest(times.length, place => times[place] >= look.from) - 1);
      pen.strokeStyle = colorOf(number); pen.lineWidth = 1.8; pen.setLineDash(line.run.number ? [6, 4] : []); pen.beginPath();
      for (let place = start; place < times.length; place++) {
        const px = x(times[place]), py = y(values[place]);
        if (place === start) pen.moveTo(px, py); else { pen.lineTo(px, y(values[place - 1])); pen.lineTo(px, py); }
        if (times[place] > look.to) break;
      }
      pen.stroke();
      const stop = lowest(times.length, place => times[place] > look.to);
      if (stop - start < (width - this.left) / 12) for (let place = start; place < stop; place++) { pen.beginPath(); pen.arc(x(times[place]), y(values[place]), 3, 0, 7); pen.fillStyle = colorOf(number); pen.fill(); }
    });
    pen.setLineDash([]); pen.restore();
    const room = Math.max(1, Math.floor(0.6 * bottom / (1.2 * theme.size))), more = lines.length - room;
    if (more > 0) sheet.write(`and ${more} more`, this.left + 14, 1.2 * theme.size * (room + 1), theme.soft);
    lines.slice(0, room).forEach((line, number) => {
      const at = lowest(line.times.length, place => line.times[place] > look.now) - 1;
      const value = at < 0 ? "" : `  ${Number(line.values[at].toPrecision(6))}`;
      sheet.write(line.name + value, this.left + 14, 1.2 * theme.size * (number + 1), colorOf(number));
    });
  }
}
