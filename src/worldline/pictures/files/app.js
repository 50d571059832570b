// Puts the views together: tabs, the moment that is looked at, play and drive, the keyboard, and news from the server.

const SPEEDS = [0.01, 0.1, 0.25, 0.5, 1, 2, 5, 10, 100];
const views = [], opening = {};  // What a view asks for when it is chosen.
let chosen = null, signals = null, story = null, playedAt = 0;

function addView(name, title, build, isThere = () => true) {
  const place = make("section", {class: "view", role: "tabpanel", id: `view-${name}`});
  place.hidden = true;
  const tab = make("button", {type: "button", role: "tab", id: `tab-${name}`, "aria-selected": "false", onclick: event => { choose(name); if (event.detail) tab.blur(); }}, title);  // By the mouse: the keys that follow are for the view.
  byId("views").append(place); byId("tabs").append(tab);
  views.push({name, place, tab, view: build(place), isThere});
}

function choose(name) {
  chosen = name;
  for (const each of views) { each.place.hidden = each.name !== name; each.tab.setAttribute("aria-selected", String(each.name === name)); }
  if (runs[0]?.columns) opening[name]?.().catch(error => inspect({title: name, rows: [], payload: error.message}));
  redraw();
}

function build() {
  if (!runs.length) {
    addView("chart", "Chart", place => new Chart(place, given.chart));
    byId("tabs").hidden = document.querySelector("footer").hidden = true;
    choose("chart");
    return;
  }
  addView("diagram", runs.length > 1 ? "Side by side" : "Diagram", place => runs.map((run, number) => {
    const half = make("div", {class: `view${runs.length > 1 ? " half" : ""}${number ? " second" : ""}`});
    place.append(half);
    return new Diagram(half, run);
  }));
  addView("network", "Network", place => new Network(place), () => runs.length === 1 && runs[0].inks.length > 0 && runs[0].members.length > 1);
  let world = null;
  addView("world", "World", place => world = new World(place), () => runs[0].facts.room === "world");
  addView("signals", "Signals", place => signals = new Signals(place));
  addView("overview", "Members", place => new Overview(place));
  addView("waits", "Waits", place => new Waits(place), () => runs[0].facts.live && (runs[0].facts.orders?.includes("end") || runs[0].looks > 0));
  let space = null;
  addView("space", "Space", place => space = new Space(place), () => space.isThere);
  if (given.story) story = new Story(byId("story"), given.story);
  opening.signals = () => signals.open(); opening.world = () => world.open();
  choose({world: "world", spacetime: "space", learning: "signals"}[runs[0].facts.room] ?? "diagram");
}

// --- The head and the foot ---

const PHASES = {loading: "reading…", starting: "starting", running: "running", paused: "paused", over: "over", failed: "failed", gone: "no connection"};

function drawFrame() {
  if (!runs.length) return;
  const run = runs[0], {status, facts} = run;
  byId("phase").textContent = PHASES[status.phase] || status.phase;
  byId("phase").className = status.phase;
  const figures = [];
  if (facts.live && status.phase !== "over") {
    figures.push(`at ${timeText(status.time ?? 0, 1e6)}${status.end ? " of " + timeText(status.end, 1e6) : ""}`);
    if (status.speed && status.phase === "running") figures.push(`${Number(status.speed.toPrecision(2))}× real time`);
    if (status.missing?.length) figures.push(`waiting for ${status.missing.join(", ")}`);
  } else if (run.ended && !status.failure) figures.push(`at ${timeText(run.ended)}`);
  figures.push(`${(run.first + run.count).toLocaleString("en")} messages`);
  for (const isUnderWay of [false, true]) {
    const count = run.losses.reduce((sum, [reason, each]) => sum + (isUnderWay === (reason === UNDER_WAY) ? each : 0), 0);
    if (count) figures.push(`${count.toLocaleString("en")} ${isUnderWay ? "under way at the end" : "not received"}`);
  }
  byId("figures").textContent = figures.join(" · ");
  const digests = runs.map(each => each.status.digest).filter(Boolean);
  byId("digest").textContent = digests.length ? `digest ${digests.map(each => digests.length > 1 ? each.slice(0, 12) : each).join(" / ")}` : "";
  const failures = runs.map(each => each.status.failure).filter(Boolean);
  if (given.difference) failures.unshift(given.difference.text);
  byId("alarm").hidden = !failures.length;
  byId("alarm").textContent = failures.join("; ");
  byId("alarm").className = given.difference ? "remark" : "";
  byId("drive").hidden = !facts.orders?.length;
  byId("end").hidden = !facts.orders?.includes("end");
  byId("do").hidden = !facts.orders?.includes("do");
  byId("pause").textContent = status.phase === "paused" ? "▶ Resume run" : "❚❚ Pause run";
  byId("clock").textContent = timeText(Math.round(look.now));
  byId("time").value = String(look.now / wholeEnd() * 10000);
  for (const each of views) each.tab.hidden = !each.isThere();
}

function tick(time) {
  if (!look.playing) return;
  const elapsed = Math.min(100, time - playedAt);
  playedAt = time;
  // At speed 1 the window that is seen passes in ten seconds, whatever its units.
  const target = look.now + look.playing * elapsed / 10000 * (look.to - look.from) * Number(byId("speed").value);
  setNow(target);
  if (target >= wholeEnd() || target <= 0) play(0); else requestAnimationFrame(tick);
}

function play(direction) {
  look.playing = look.playing === direction ? 0 : direction;
  byId("play").textContent = look.playing > 0 ? "❚❚" : "▶";
  byId("back").textContent = look.playing < 0 ? "❚❚" : "◀";
  if (!look.playing) return;
  if (direction > 0 && look.now >= wholeEnd()) look.now = 0;
  playedAt = performance.now();
  requestAnimationFrame(tick);
}

// Go to the next thing of the kind that is chosen, or the one before.
function seek(direction) {
  const kind = byId("seek").value;
  if (kind === "step") { story.go(look.step + direction); return; }
  let best = null;
  const consider = time => { if (direction > 0 ? time > look.now && (best === null || time < best) : time < look.now && (best === null || time > best)) best = time; };
  for (const run of runs) {
    if (kind === "fault" || kind === "log" || kind === "event")
      for (const note of run.notes) if (kind === "event" || (kind === "log" ? note.topic === LOG : run.isFault(note))) consider(note.at);
    if (!run.columns || kind === "fault" || kind === "log") continue;
    const {sent, arrival} = run.columns;
    if (kind === "loss") { for (const row of run.lost) consider(arrival[row - run.first]); continue; }
    const middle = run.rowAt(look.now), start = Math.max(0, run.rowAt(look.now - run.longest) - 2000);
    for (let row = start; row < Math.min(run.count, middle + 2000); row++) { consider(sent[row]); consider(arrival[row]); }
  }
  if (best !== null) { look.follow = false; setNow(best); }
}

function connectControls() {
  for (const speed of SPEEDS) byId("speed").append(make("option", {value: speed, selected: speed === 1}, `${speed} ×`));
  byId("time").addEventListener("input", () => { look.follow = false; setNow(Number(byId("time").value) / 10000 * wholeEnd()); });
  byId("play").addEventListener("click", () => play(1));
  byId("back").addEventListener("click", () => play(-1));
  byId("next").addEventListener("click", () => seek(1));
  byId("previous").addEventListener("click", () => seek(-1));
  byId("theme").addEventListener("click", () => { document.documentElement.classList.toggle("dark"); readTheme(); redraw(); });
  byId("presentation").addEventListener("click", present);
  const say = promise => promise.then(() => poll(), error => inspect({title: "not done", rows: [], payload: error.message}));
  byId("pause").addEventListener("click", () => say(order(runs[0].status.phase === "paused" ? "resume" : "pause")));
  byId("step").addEventListener("click", () => say(order("step")));
  byId("goto").addEventListener("click", () => say(order("step", {to: byId("to").value.trim()})));
  byId("end").addEventListener("click", () => say(order("end")));
  byId("do").addEventListener("keydown", event => {
    const line = byId("do").value.trim();
    if (event.key === "Enter" && line) say(order("do", {line}).then(said => { inspect({title: line, rows: [], payload: said}); byId("do").select(); }));
  });
  document.addEventListener("keydown", event => {
    if (!runs.length && !/^[pt]$/.test(event.key) || event.ctrlKey || event.altKey || event.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "range") return;
    const length = look.to - look.from, keys = {
      " ": () => play(1), b: () => play(-1), ArrowRight: () => seek(1), ArrowLeft: () => seek(-1), Home: () => setNow(0), End: () => setNow(wholeEnd()),
      "+": () => zoom(0.6, look.now), "=": () => zoom(0.6, look.now), "-": () => zoom(1 / 0.6, look.now), a: () => setWindow(0, wholeEnd() * 1.02),
      PageDown: () => setWindow(look.from + 0.8 * length, look.to + 0.8 * length), PageUp: () => setWindow(look.from - 0.8 * length, look.to - 0.8 * length),
      p: present, t: () => byId("theme").click(), Escape: () => { look.selected = null; inspect(null); redraw(); },
    };
    const act = keys[event.key] || (/^[1-9]$/.test(event.key) ? () => { const tabs = views.filter(each => each.isThere()); if (tabs[event.key - 1]) choose(tabs[event.key - 1].name); } : null);
    if (act) { act(); event.preventDefault(); }
  });
}

function present() {
  const on = document.documentElement.classList.toggle("large");
  byId("presentation").setAttribute("aria-pressed", String(on));
  readTheme(); redraw();
}

// --- News ---

let polling = false;

// Ask for what isn't here yet, of all runs.
async function poll() {
  if (polling) return;
  polling = true;
  try {
    for (const run of runs) {
      const before = run.version;
      while (run.take(await ask("news", {show: run.number, ...run.have()}))) if (given.packed) break;
      if (run.version !== before || look.follow) follow();
    }
  } catch (error) {
    for (const run of runs) if (!["over", "failed"].includes(run.status.phase)) run.status = {...run.status, phase: "gone"};
  } finally { polling = false; }
  redraw();
}

// Keep the window at the whole run, or at its latest part, until the user looks elsewhere.
function follow() {
  if (!look.follow) return;
  const isGrowing = runs.some(run => run.facts.live && ["starting", "running", "paused"].includes(run.status.phase));
  const latest = Math.max(...runs.map(run => run.latest)), end = !isGrowing && latest > 0 && latest < wholeEnd() / 2 ? latest : wholeEnd();  // What comes after is quiet.
  look.to = end * 1.03; look.from = isGrowing && chosen !== "signals" ? Math.max(0, end - Math.max(end / 5, 1)) : -0.01 * end;
  if (isGrowing) look.now = end;
}

async function live() {
  if (!runs.length) { redraw(); return; }
  if (given.packed) await unpack();
  await poll();
  await opening[chosen]?.();
  if (given.difference?.at !== undefined && given.difference.at !== null) {  // Its whole way is to be seen.
    const {at, chain} = given.difference, last = Math.max(at, ...chain.map(each => each.at)), length = Math.max(last - at, wholeEnd() / 50);
    setWindow(at - 0.15 * length, last + 0.4 * length);
    setNow(at);
  }
  for (;;) {
    const isOver = runs.every(run => ["over", "failed"].includes(run.status.phase));
    await new Promise(resolve => setTimeout(resolve, document.hidden ? 2000 : isOver ? 3000 : 200));
    if (given.packed) return;
    if (!isOver || !document.hidden) await poll();
    if (chosen === "signals" && !isOver) { await signals.open(); await signals.refresh(); }
    if (chosen === "world" && !isOver) await opening.world();
  }
}

document.documentElement.classList.toggle("dark", matchMedia("(prefers-color-scheme: dark)").matches);
readTheme();
build();
connectControls();
listeners.unshift(drawFrame);
window.worldline = {  // For tests, and for the curious.
  runs, look, setNow, setWindow, select, choose, signals: () => signals.lines, views: () => Object.fromEntries(views.map(each => [each.name, each.view])),
  spotOf: (show, row) => {  // Where a message's arrow has its middle on the screen.
    const diagram = views[0].view[show], area = diagram.sheet.canvas.getBoundingClientRect(), spot = diagram.spots.find(each => each[4] === row);
    return [area.left + (spot[0] + spot[2]) / 2, area.top + (spot[1] + spot[3]) / 2];
  },
};
live();
