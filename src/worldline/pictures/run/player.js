// A run: a lane for each member, and messages as lines from lane to lane, as far as they have come. Messages are
// [sent, arrival, sender, receiver, topic, text, reason of its loss or -1], in the order of their sending; notes are
// [time, member, topic, text]. The wheel zooms into time, dragging moves, a double click shows all.

const TOP = 16, BOTTOM = 26, RIGHT = 16, UNITS = [[86400e9, "d"], [3600e9, "h"], [60e9, "min"], [1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
let beside = 80; // Where lanes begin, behind the names.
let view = null; // From when to when, if it isn't all.
let grabbed = null;

const span = () => view || [0, Math.max(1, data.end)];
const across = time => beside + (time - span()[0]) / (span()[1] - span()[0]) * (width - beside - RIGHT);
const timeAt = x => span()[0] + (x - beside) / (width - beside - RIGHT) * (span()[1] - span()[0]);
const lane = place => TOP + (height - TOP - BOTTOM) * (place + 0.5) / data.members.length;

function timeText(time, step) {
  const [unit, name] = UNITS.find(([each]) => span()[1] - span()[0] >= each) || [1, "ns"];
  const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / unit) + 1e-9)));
  return (time / unit).toFixed(digits) + " " + name;
}

function fitRun() {
  pen.font = "12px system-ui, sans-serif";
  const longest = data.members.reduce((most, [name]) => Math.max(most, pen.measureText(name).width), 0);
  beside = Math.min(width * 0.3, 28 + longest);
}

function explainRun() {
  data.topics.forEach((topic, place) => {
    if (place >= 24) return;
    const sample = document.createElement("i");
    sample.style.background = colors[place % colors.length];
    entry(sample, topic);
  });
}

function axes() {
  const [from, to] = span(), step = nice((to - from) / Math.max(2, (width - beside) / 110));
  pen.font = "11px system-ui, sans-serif"; pen.textAlign = "center"; pen.lineWidth = 1;
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    pen.strokeStyle = theme.faint;
    line(across(time), TOP - 8, across(time), height - BOTTOM);
    pen.fillStyle = theme.soft;
    pen.fillText(timeText(time, step), across(time), height - 8);
  }
  const gap = (height - TOP - BOTTOM) / data.members.length;
  data.members.forEach(([name, began, ended], place) => {
    pen.strokeStyle = theme.lane; pen.lineWidth = Math.min(5, Math.max(1, gap * 0.2));
    line(Math.max(beside, across(began)), lane(place), Math.min(width - RIGHT, across(ended)), lane(place));
    if (gap < 11 && place % Math.ceil(11 / gap)) return;
    pen.textAlign = "right"; pen.fillStyle = theme.ink; pen.font = "12px system-ui, sans-serif";
    pen.fillText(name.length > 28 ? name.slice(0, 27) + "…" : name, beside - 10, lane(place) + 4);
  });
}

// Draw a message as far as it has come; return where it is, on the canvas.
function message([sent, arrival, sender, receiver, topic, , reason]) {
  const share = arrival > sent ? Math.min(1, (now - sent) / (arrival - sent)) : 1;
  const a = across(sent), b = lane(sender), c = between(a, across(arrival), share), d = between(b, lane(receiver), share);
  const isLost = reason >= 0;
  pen.strokeStyle = pen.fillStyle = isLost ? theme.lost : colors[topic % colors.length];
  pen.setLineDash(isLost ? [4, 3] : []);
  line(a, b, c, d);
  pen.setLineDash([]);
  if (isLost && share === 1) { line(c - 3, d - 3, c + 3, d + 3); line(c - 3, d + 3, c + 3, d - 3); }
  else { pen.beginPath(); pen.arc(c, d, share < 1 ? 3.4 : 2, 0, 7); pen.fill(); }
  return [a, b, c, d];
}

function away([a, b, c, d], [x, y]) {
  const long = (c - a) ** 2 + (d - b) ** 2 || 1;
  const share = Math.max(0, Math.min(1, ((x - a) * (c - a) + (y - b) * (d - b)) / long));
  return Math.hypot(between(a, c, share) - x, between(b, d, share) - y);
}

function drawRun() {
  const [from, to] = span();
  axes();
  pen.save();
  pen.beginPath(); pen.rect(beside - 1, 0, width - beside, height - BOTTOM); pen.clip();
  const all = data.messages, shown = byId("lost").checked;
  let nearest = 8, under = null, labels = [];
  pen.lineWidth = all.length > 4000 ? 0.7 : all.length > 400 ? 1 : 1.5;
  for (const each of all) {
    if (each[0] > now) break;
    if (each[1] < from || each[0] > to || (each[6] >= 0 && !shown)) continue;
    const where = message(each);
    if (mouse && !grabbed) { const far = away(where, mouse); if (far < nearest) { nearest = far; under = [each, where]; } }
    if (each[1] > now) labels.push([data.topics[each[4]], where]);
  }
  if (byId("notes").checked) for (const each of data.notes) {
    const [at, member, topic] = each;
    if (at > now) break;
    if (at < from || at > to) continue;
    pen.fillStyle = colors[topic % colors.length];
    pen.beginPath(); pen.arc(across(at), lane(member), 3, 0, 7); pen.fill();
    if (!mouse || grabbed) continue;
    const far = Math.hypot(across(at) - mouse[0], lane(member) - mouse[1]);
    if (far < nearest) { nearest = far; under = [each, [across(at), lane(member), across(at), lane(member)]]; }
  }
  if (byId("names").checked && labels.length <= 30) for (const [text, [, , x, y]] of labels) {
    pen.font = "11px system-ui, sans-serif"; pen.textAlign = "left"; pen.fillStyle = theme.soft;
    written(text, x + 7, y - 5);
  }
  pen.strokeStyle = theme.soft; pen.lineWidth = 1;
  line(across(now), TOP - 8, across(now), height - BOTTOM);
  pen.restore();
  if (under) tell(told(under[0]), under[1][2] + 14, under[1][3] + 14); else tell(null);
  return [timeText(now, (to - from) / 1000)];
}

function told(each) {
  const name = place => data.members[place][0];
  if (each.length === 4) return name(each[1]) + " " + data.topics[each[2]] + "\n" + data.texts[each[3]];
  const [sent, arrival, sender, receiver, topic, text, reason] = each, step = (span()[1] - span()[0]) / 1e4;
  return data.topics[topic] + ": " + name(sender) + " → " + name(receiver) + "\n" +
    timeText(sent, step) + " → " + (reason < 0 ? timeText(arrival, step) : data.texts[reason]) + "\n" + data.texts[text];
}

function look(from, to) {
  const whole = Math.max(1, data.end), long = Math.min(whole, Math.max(1, to - from));
  const start = Math.max(0, Math.min(from, whole - long));
  view = long >= whole ? null : [start, start + long];
  draw();
}
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  const middle = timeAt(spotUnder(event)[0]), factor = Math.exp(event.deltaY / 500), [from, to] = span();
  look(middle - (middle - from) * factor, middle + (to - middle) * factor);
}, {passive: false});
canvas.addEventListener("pointerdown", event => { grabbed = spotUnder(event); canvas.setPointerCapture(event.pointerId); });
canvas.addEventListener("pointerup", () => { grabbed = null; draw(); });
canvas.addEventListener("pointermove", event => {
  if (!grabbed || !view) return;
  const spot = spotUnder(event), moved = timeAt(grabbed[0]) - timeAt(spot[0]);
  grabbed = spot;
  look(view[0] + moved, view[1] + moved);
});
canvas.addEventListener("dblclick", () => look(0, data.end));

begin({
  from: 0, to: data.end, perSecond: data.end / 20, moves: data.end > 0, themed: ["lane", "lost"],
  switches: ["notes", "lost", "names"], fit: fitRun, explain: explainRun, draw: drawRun,
});
