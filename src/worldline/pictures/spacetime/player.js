// Plays agents in a plane, or on a line with the past below it, and lambdas on their way.

const flat = data.flat, end = data.end, [t0, dt, x0, y0, dx] = data.scale;

// Ways: corners [t, x, y] are written as differences. To corners in `jumps` an agent jumps.
const agents = data.names.map((name, place) => {
  const t = [], x = [], y = [];
  let a = 0, b = 0, c = 0;
  const way = data.ways[place];
  for (let i = 0; i < way.length; i += 3) {
    t.push(a += way[i]); x.push(b += way[i + 1]); y.push(c += way[i + 2]);
  }
  return {name, t, x, y, jumps: new Set(), died: false, at: 0, looks: [[0, place % data.day.length]], spot: 0};
});
for (let i = 0; i < data.jumps.length; i += 2) agents[data.jumps[i]].jumps.add(data.jumps[i + 1]);
for (const place of data.died) agents[place].died = true;

// Looks: what agents are shown as, [text, place in the palette]. In `shown`: who, since when, which theme.
const isShared = data.looks.length > 0, shapes = 4;
if (isShared) {
  for (const agent of agents) agent.looks = [];
  for (let i = 0; i < data.shown.length; i += 3) agents[data.shown[i]].looks.push(data.shown.slice(i + 1, i + 3));
}
function lookAt(agent, time) {
  const looks = agent.looks;
  return looks[lastUntil(time, place => looks[place][0], 0, looks.length)][1];
}
// A look's place says how it is drawn; those for which there are no more colors and shapes have none, and are gray.
const placeOf = look => isShared ? data.looks[look][1] : look;
const colorOf = look => placeOf(look) < 0 ? theme.soft : colors[placeOf(look) % colors.length];
const shapeOf = look => isShared ? Math.max(0, Math.floor(placeOf(look) / data.day.length)) % shapes : 0;
const hue = (agent, time) => colorOf(lookAt(agent, time));

// Trace the outline of a body: a circle, a square, a triangle or a rhomb.
function outline(on, shape, x, y, radius) {
  on.beginPath();
  if (shape === 0) { on.arc(x, y, radius, 0, 2 * Math.PI); return; }
  const count = shape === 2 ? 3 : 4, turn = shape === 1 ? Math.PI / 4 : -Math.PI / 2;
  const size = radius * (shape === 2 ? 1.4 : 1.25);
  for (let i = 0; i < count; i++) {
    const angle = turn + i * 2 * Math.PI / count;
    on[i ? "lineTo" : "moveTo"](x + size * Math.cos(angle), y + size * Math.sin(angle));
  }
  on.closePath();
}

const gone = (each, time) => each.to > each.from ? Math.min(1, (time - each.from) / (each.to - each.from)) : 1;

// Return where an agent is: [x, y, whether it is jumping], or null before its birth and after its end.
function where(agent, time) {
  const t = agent.t, last = t.length - 1;
  if (time < t[0] || time > t[last]) return null;
  let i = agent.at;
  if (t[i] > time || i >= last) i = 0;
  if (i + 1 < last && t[i + 1] <= time) i = lastUntil(time, place => t[place], i, last);
  agent.at = i;
  if (i >= last) return [agent.x[last], agent.y[last], false];
  const share = t[i + 1] > t[i] ? Math.min(1, (time - t[i]) / (t[i + 1] - t[i])) : 1;
  const jumping = agent.jumps.has(i + 1) && share < 1;
  return [between(agent.x[i], agent.x[i + 1], share), between(agent.y[i], agent.y[i + 1], share), jumping];
}

// Lambdas: [time since the one before, duration, source, target, what, fate], and where they begin and end.
const flights = [];
for (let i = 0, time = 0; i < data.flights.length; i += 10) {
  const [wait, lasts, source, target, what, fate, ...ends] = data.flights.slice(i, i + 10);
  time += wait;
  flights.push({from: time, to: time + lasts, source, target, what, fate, a: ends.slice(0, 2), b: ends.slice(2)});
}

// The window.
let past = 1;
const [xMin, yMin, xMax, yMax] = data.box;
function fit() {
  const margin = 44, w = Math.max(xMax - xMin, 1e-9), h = Math.max(yMax - yMin, 1e-9);
  zoom = (width - 2 * margin) / w;
  if (!flat) zoom = Math.min(zoom, (height - 2 * margin) / h);
  if (!(zoom > 0) || zoom > 1e6) zoom = 1;
  left = width / 2 - zoom * (xMin + xMax) / 2;
  low = flat ? Math.round(height * 0.22) : height / 2 + zoom * (yMin + yMax) / 2;
  // In a line, the past runs down: as fast as light goes aside, unless that shows too little of it.
  past = Math.min(zoom * dt / dx, height * 0.78 / Math.max(1, end * 0.3));
}

const perSecond = end / Math.max(6, Math.min(30, 6 + flights.length / 40));

function number(value) {
  const size = Math.abs(value);
  return size && (size >= 1e6 || size < 1e-3) ? value.toExponential(3) : String(+value.toPrecision(5));
}

function drawAgents() {
  grid();
  if (flat) history(); else walls();
  const moving = [];
  for (const each of flights) if (each.from <= now && now <= each.to) moving.push(each);
  if (!flat && byId("circles").checked) circles(moving);
  const here = agents.map(agent => where(agent, now));
  if (!flat && byId("trails").checked) trails(here);
  for (const each of moving) dot(each);
  pulses();
  names(here);
  bodies(here);
  failures();
  labels();
  count(here);
  hover(here, moving);
  const shown = number(t0 + now * dt);
  return ["t = " + shown, "lab time " + shown];
}

// Call with the value and the pixel of each tick of an axis; `up` is the one upwards.
function ticks(up, mark) {
  const step = nice(90 / zoom * dx), zero = up ? y0 : x0;
  const ends = up ? [low - height, low] : [-left, width - left];
  const first = Math.ceil((zero + ends[0] / zoom * dx) / step), last = Math.floor((zero + ends[1] / zoom * dx) / step);
  for (let i = first; i <= last && last - first < 99; i++)
    mark(number(i * step), (up ? sy : sx)((i * step - zero) / dx));
}

// The past of a line runs down: call with the lab time and the pixel of its ticks.
function moments(mark) {
  const step = nice(60 / past * dt), from = t0 + Math.max(0, now - (height - low) / past) * dt, to = t0 + now * dt;
  for (let i = Math.ceil(from / step); i <= to / step; i++)
    mark(number(i * step), low + (now - (i * step - t0) / dt) * past);
}

function grid() {
  pen.strokeStyle = theme.faint; pen.lineWidth = 1;
  ticks(false, (_, x) => line(x, 0, x, height));
  if (flat) moments((_, y) => line(0, y, width, y)); else ticks(true, (_, y) => line(0, y, width, y));
}

function labels() {
  pen.font = "11px system-ui, sans-serif"; pen.fillStyle = theme.soft; pen.textAlign = "center";
  ticks(false, (text, x) => { if (x > 70 && x < width - 50) written(text, x, height - 6); });
  pen.textAlign = "right";
  written(data.axes[0] + " →", width - 8, height - 6);
  pen.textAlign = "left";
  if (flat) moments((text, y) => { if (y < height - 22 && y > low + 8) written(text, 6, y - 4); });
  else ticks(true, (text, y) => { if (y < height - 22 && y > 26) written(text, 6, y - 4); });
  written((flat ? "lab time" : data.axes[1]) + " ↑", 8, flat ? height - 6 : 14);
}

// Boundaries: where p x + q y = r + s t, and less than that inside. Each is drawn where it isn't outside of another.
function walls() {
  pen.save();
  pen.strokeStyle = theme.soft; pen.lineWidth = 1.4; pen.setLineDash([7, 3, 2, 3]);
  for (const wall of data.walls) {
    const [p, q, r, s] = wall, size = p * p + q * q, share = (r + s * now) / size, x = p * share, y = q * share;
    const reach = (width + height) / zoom * 2 / Math.sqrt(size);
    let from = -reach, to = reach;
    for (const [a, b, c, d] of data.walls) {
      const slope = b * p - a * q, room = c + d * now - a * x - b * y;
      if (Math.abs(slope) < 1e-9 * size) continue;
      if (slope > 0) to = Math.min(to, room / slope); else from = Math.max(from, room / slope);
    }
    if (from < to) line(sx(x - q * from), sy(y + p * from), sx(x - q * to), sy(y + p * to));
  }
  pen.restore();
}

function circles(moving) {
  pen.strokeStyle = theme.light; pen.lineWidth = 1.2;
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
  pen.strokeStyle = pen.fillStyle = hue(agents[each.source], each.from);
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
    pen.strokeStyle = hue(agents[each.source], each.from);
    pen.beginPath(); pen.arc(sx(each.b[0]), flat ? low : sy(each.b[1]), 5 + 9 * age, 0, 2 * Math.PI); pen.stroke();
  }
  pen.globalAlpha = 1;
}

function trails(here) {
  const lasts = end * 0.12, count = agents.length > 300 ? 3 : 8;
  pen.lineWidth = agents.length > 300 ? 1 : 1.8;
  agents.forEach((agent, place) => {
    if (!here[place]) return;
    let last = here[place], kept = agent.at;
    for (let i = 1; i <= count; i++) {
      const spot = where(agent, now - lasts * i / count);
      if (!spot || spot[2] || last[2]) break;
      pen.strokeStyle = hue(agent, now - lasts * (i - 0.5) / count);
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
  pen.strokeStyle = theme.soft; pen.lineWidth = 1; line(0, low, width, low);
  for (const each of flights) {
    if (each.from > now || each.to < reach) continue;
    pen.globalAlpha = each.fate === 0 ? 0.5 : 0.2;
    pen.strokeStyle = hue(agents[each.source], each.from); pen.lineWidth = 1;
    line(sx(each.a[0]), down(each.from), spotOf(each, gone(each, now))[0], down(Math.min(now, each.to)));
  }
  pen.globalAlpha = 1; pen.lineWidth = 2;
  for (const agent of agents) {
    for (let i = 0; i + 1 < agent.t.length && agent.t[i] <= now; i++) {
      if (agent.t[i + 1] < reach) continue;
      const full = agent.t[i + 1] - agent.t[i], isJump = agent.jumps.has(i + 1);
      const gone = time => full > 0 ? (time - agent.t[i]) / full : 1;
      const changes = isJump ? [] : agent.looks.map(each => each[0]);
      const cuts = changes.filter(time => time > agent.t[i] && time < agent.t[i + 1]);
      pen.setLineDash(isJump ? [5, 4] : []);
      let from = agent.t[i], x = sx(agent.x[i]);
      for (const cut of [...cuts, agent.t[i + 1]]) {
        const to = Math.min(now, cut), toX = sx(between(agent.x[i], agent.x[i + 1], gone(to)));
        pen.strokeStyle = hue(agent, from);
        line(x, down(from), toX, down(to));
        from = to; x = toX;
        if (cut > now) break;
      }
    }
    pen.setLineDash([]);
    const last = agent.t.length - 1;
    if (agent.died && agent.t[last] <= now) {
      pen.strokeStyle = hue(agent, agent.t[last]);
      cross(sx(agent.x[last]), down(agent.t[last]), 5);
    }
  }
  pen.lineWidth = 1.4; pen.strokeStyle = theme.soft; pen.setLineDash([7, 3, 2, 3]);
  for (const [p, , r, s] of data.walls)
    line(sx((r + s * now) / p), low, sx((r + s * reach) / p), height);
  pen.setLineDash([]);
}

function cross(x, y, arm) { line(x - arm, y - arm, x + arm, y + arm); line(x - arm, y + arm, x + arm, y - arm); }

const many = agents.length, radius = many > 400 ? 2.6 : many > 60 ? 3.6 : 5.5;

function bodies(here) {
  agents.forEach((agent, place) => {
    const spot = here[place], last = agent.t.length - 1, look = lookAt(agent, now);
    pen.fillStyle = pen.strokeStyle = colorOf(look);
    if (!spot) {
      if (agent.died && !flat && agent.t[last] < now) {
        pen.globalAlpha = 0.45; pen.lineWidth = 1.6;
        cross(sx(agent.x[last]), sy(agent.y[last]), radius * 0.8);
        pen.globalAlpha = 1;
      }
      return;
    }
    outline(pen, shapeOf(look), sx(spot[0]), flat ? low : sy(spot[1]), radius);
    if (spot[2]) { pen.lineWidth = 1.4; pen.setLineDash([3, 2]); pen.stroke(); pen.setLineDash([]); }
    else { pen.fill(); pen.lineWidth = 1.5; pen.strokeStyle = theme.paper; pen.stroke(); }
  });
}

const short = text => text.length > 24 ? text.slice(0, 23) + "…" : text;

// Write names beside bodies where they cover no other name: each where it was last, if it can be, so that it is calm.
function names(here) {
  if (many > 60) return;
  pen.font = "600 12px system-ui, sans-serif"; pen.textAlign = "left"; pen.fillStyle = theme.ink;
  if (flat) { slantedNames(here); return; }
  const taken = [];
  for (const spot of here) if (spot) {
    const x = sx(spot[0]), y = sy(spot[1]);
    taken.push([x - radius, y - radius, x + radius, y + radius]);
  }
  agents.forEach((agent, place) => {
    if (!here[place]) return;
    const text = short(agent.name), wide = pen.measureText(text).width, x = sx(here[place][0]), y = sy(here[place][1]);
    const right = x + radius + 4, away = x - radius - 4 - wide, middle = x - wide / 2;
    const spots = [[right, y - radius], [right, y + radius + 9], [away, y - radius], [away, y + radius + 9],
      [middle, y - radius - 6], [middle, y + radius + 15]];
    for (let i = 0; i < spots.length; i++) {
      const choice = (agent.spot + i) % spots.length, [a, b] = spots[choice];
      const box = [a - 2, b - 11, a + wide + 2, b + 3];
      if (box[0] < 0 || box[2] > width || taken.some(other => overlap(box, other))) continue;
      agent.spot = choice;
      taken.push(box);
      written(text, a, b);
      return;
    }
  });
}

// On a line, names stand over it; those of agents at one place are written together.
function slantedNames(here) {
  const groups = [];
  agents.forEach((agent, place) => {
    if (!here[place]) return;
    const x = sx(here[place][0]), group = groups.find(other => Math.abs(other.x - x) < 14);
    if (group) group.names.push(short(agent.name)); else groups.push({x, names: [short(agent.name)]});
  });
  for (const {x, names} of groups) {
    const more = names.length > 3 ? " +" + (names.length - 3) : "";
    pen.save();
    pen.translate(x + 4, low - 10); pen.rotate(-0.6);
    written(names.slice(0, 3).join(", ") + more, 0, 0);
    pen.restore();
  }
}

// Mark where the run has failed, from then on.
function failures() {
  pen.font = "600 12px system-ui, sans-serif";
  for (let i = 0; i < data.failures.length; i += 2) {
    const agent = agents[data.failures[i]], last = agent.t.length - 1;
    if (agent.t[last] > now) continue;
    const x = sx(agent.x[last]), y = flat ? low : sy(agent.y[last]), isLeft = x < width / 2;
    pen.strokeStyle = theme.alarm; pen.fillStyle = theme.paper; pen.lineWidth = 2.5;
    pen.beginPath(); pen.arc(x, y, 9, 0, 2 * Math.PI); pen.fill(); pen.stroke();
    cross(x, y, 4);
    pen.fillStyle = theme.alarm;
    pen.textAlign = isLeft ? "left" : "right";
    const most = Math.floor((isLeft ? width - x : x) / 8), text = data.failures[i + 1];
    written(text.length > most ? text.slice(0, most - 1) + "…" : text, x + (isLeft ? 16 : -16), y + 22);
  }
}

// The legend: what agents are shown as, how many of them there are now, and what else is to be seen.
const counts = [];
function explain() {
  counts.length = 0;
  const explained = (text, drawn) => {
    const sample = document.createElement("canvas"), on = sample.getContext("2d");
    sample.width = sample.height = Math.round(16 * ratio);
    on.scale(ratio, ratio);
    drawn(on);
    const number = document.createElement("output");
    entry(sample, text, number);
    return number;
  };
  const crossed = (on, color, arm) => {
    on.strokeStyle = color; on.lineWidth = 2; on.beginPath();
    for (const sign of [1, -1]) { on.moveTo(8 - arm, 8 - arm * sign); on.lineTo(8 + arm, 8 + arm * sign); }
    on.stroke();
  };
  data.looks.forEach(([text], look) => counts.push(explained(text, on => {
    on.fillStyle = colorOf(look); outline(on, shapeOf(look), 8, 8, 5.5); on.fill();
  })));
  if (flights.length) explained("lambda", on => { on.fillStyle = theme.soft; outline(on, 0, 8, 8, 2.4); on.fill(); });
  if (data.died.length) explained("death", on => crossed(on, theme.soft, 4));
  if (data.failures.length) explained("failure", on => {
    crossed(on, theme.alarm, 3); on.beginPath(); on.arc(8, 8, 6.5, 0, 2 * Math.PI); on.stroke();
  });
}

function count(here) {
  const found = counts.map(() => 0);
  here.forEach((spot, place) => { if (spot && counts.length) found[lookAt(agents[place], now)]++; });
  counts.forEach((output, look) => { output.textContent = String(found[look]); });
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
  tell(said && said(), x + 12, y + 12);
  if (!said) return;
  pen.strokeStyle = theme.ink; pen.lineWidth = 2;
  pen.beginPath(); pen.arc(x, y, 9, 0, 2 * Math.PI); pen.stroke();
}

function about(agent, spot) {
  const places = [number(x0 + spot[0] * dx), number(y0 + spot[1] * dx)].slice(0, data.axes.length);
  const where = data.axes.map((name, place) => name + " = " + places[place]).join(", ");
  const shown = isShared ? "\n" + data.looks[lookAt(agent, now)][0] : "";
  return agent.name + shown + "\n" + where + (spot[2] ? ", jumping" : "");
}

begin({
  from: 0, to: end, perSecond, moves: agents.length > 0, themed: ["light", "alarm"], switches: ["trails", "circles"],
  fit, explain, draw: drawAgents,
});
