// The run page: asks for the counters and for sampled events once a second, and draws them.
"use strict";

const POLL_MS = 1000;
// Seconds of rates that are shown, and events that can be stepped through.
const HISTORY = 60;
const KEEP = 256;
const SVG = "http://www.w3.org/2000/svg";
// Half the side of the picture of a disk, in mm: its rim is at 295 mm.
const HALF = 310;

const by = (id) => document.getElementById(id);

function make(name, attributes = {}, text = "") {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

function shape(name, attributes = {}, text = "") {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text) element.textContent = text;
  return element;
}

function row(cells) {
  const tr = make("tr");
  for (const cell of cells) tr.append(cell instanceof Node ? cell : make("td", {}, cell));
  return tr;
}

// Gives a table its rows. Each cell has the name of its column, which is beside it where there is no
// room for columns.
function fill(id, rows) {
  const body = by(id);
  const names = [...body.closest("table").tHead.rows[0].cells].map((cell) => cell.textContent);
  for (const cell of rows.flatMap((tr) => [...tr.cells])) {
    if (cell.colSpan === 1) cell.dataset.column = names[cell.cellIndex];
  }
  body.replaceChildren(...rows);
}

// Numbers for people: three digits and a prefix.
function short(n) {
  const steps = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];
  const [unit, name] = steps.find(([unit]) => n >= unit) ?? [1, ""];
  return (n / unit).toFixed(n / unit >= 100 || (unit === 1 && Number.isInteger(n)) ? 0 : 1) + name;
}

function time(ns) {
  const steps = [[1e9, " s"], [1e6, " ms"], [1e3, " µs"]];
  const [unit, name] = steps.find(([unit]) => ns >= unit) ?? [1, " ns"];
  return `${+(ns / unit).toPrecision(3)}${name}`;
}

const sum = (numbers) => numbers.reduce((total, n) => total + n, 0);

const many = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;

// The counters.

// What has been asked for last, and what before: rates are their difference.
let now = null;
let before = null;
const history = new Map();

function rate(of) {
  const seconds = before && now ? now.uptime_s - before.uptime_s : 0;
  return seconds > 0 ? Math.max(0, (of(now) - of(before)) / seconds) : 0;
}

function showTiles() {
  const { events, ledger, deadline, sampling } = now;
  const decided = events.accepted + events.rejected;
  // Without those that are under way.
  const lost = sum(Object.values(ledger.dropped));
  const total = now.latency_ns.total;
  const tiles = [
    ["Events/s", short(rate((run) => run.events.built))],
    ["Accepted", decided ? `${((100 * events.accepted) / decided).toFixed(1)} %` : "–"],
    ["Rings/s", short(rate((run) => run.events.rings))],
    ["Frames/s", short(rate((run) => run.ledger.from_wire))],
    ["Dropped", short(lost), lost > 0],
    ["Missing", short(now.missing), now.missing > 0],
    ["Latency p99.99", total?.count ? time(total.p9999) : "–"],
    ["Late decisions", short(deadline.late_decisions), deadline.late_decisions > 0],
    ["Samples not shown", short(sampling.missed)],
  ];
  by("now").replaceChildren(...tiles.map(([name, value, bad]) => {
    const tile = make("div", bad ? { class: "bad" } : {});
    tile.append(make("dt", {}, name), make("dd", {}, value));
    return tile;
  }));
}

function spark(id, value) {
  const values = history.get(id) ?? [];
  if (before) values.push(value);
  history.set(id, values.slice(-HISTORY));
  const most = Math.max(...values, 1);
  const points = values.slice(-HISTORY).map((v, i) => `${(i * 100) / (HISTORY - 1)},${29 - (28 * v) / most}`);
  const svg = shape("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(shape("polyline", { points: points.join(" ") }));
  return svg;
}

function showStreams() {
  fill("streams", now.streams.map((stream, i) => {
    const frames = rate((run) => run.streams[i].packets);
    const bits = 8 * rate((run) => run.streams[i].bytes);
    const title = `board ${stream.board}, UDP port ${stream.udp_port}`;
    const name = make("th", { scope: "row", title }, `${stream.id} (${stream.udp_port})`);
    const picture = make("td");
    picture.append(spark(stream.id, frames));
    const faults = [stream.missing, stream.duplicates, stream.late];
    const wrong = stream.faults.join(", ");
    return row([name, picture, short(frames), (bits / 1e6).toFixed(1),
      ...faults.map((n) => make("td", n > 0 ? { class: "bad" } : {}, short(n))),
      make("td", wrong ? { class: "bad" } : {}, wrong || "none")]);
  }));
}

function showDrops() {
  const { from_wire, delivered, dropped } = now.ledger;
  const causes = Object.entries(dropped);
  const rows = causes.map(([cause, n]) => row([make("th", { scope: "row" }, cause), short(n),
    short(rate((run) => run.ledger.dropped[cause] ?? 0))]));
  if (rows.length === 0) rows.push(row([make("td", { colspan: 3 }, "Nothing was dropped.")]));
  fill("drops", rows);
  const lost = sum(Object.values(dropped));
  const under = from_wire - delivered - lost;
  by("balance").textContent = `${from_wire} frames from the wire = ${delivered} delivered + ${lost} dropped`
    + (under > 0 ? ` + ${under} under way.` : ".");
}

// The sets of rules, the one in force last.
function showRules() {
  const sets = [...now.rules];
  const inForce = sets.pop();
  by("sets-table").hidden = sets.length === 0;
  if (!inForce) {
    by("rules-now").textContent = "Nothing is decided here.";
    return;
  }
  const { set, events, monitored } = inForce;
  by("rules-now").textContent = `Set ${set}, after ${many(sets.length, "change")}: ${events} events`
    + (monitored > 0 ? `, ${monitored} of those rejected are kept.` : ".");
  const old = (run) => run.rules.find((other) => other.set === set);
  fill("rules", inForce.rules.map(({ name, asks, accepted }, i) => row([
    make("th", { scope: "row" }, name), make("td", { class: "words" }, asks),
    short(rate((run) => old(run)?.rules[i].held ?? 0)), short(rate((run) => old(run)?.rules[i].accepted ?? 0)),
    `${accepted}`])));
  fill("sets", sets.reverse().map(({ set, events, accepted, monitored, rules }) => row([
    make("th", { scope: "row" }, `${set}`), make("td", { class: "words" }, rules.map(({ name }) => name).join(", ")),
    `${events}`, `${accepted}`, `${monitored}`])));
}

function showFiles() {
  const files = [["Event records (--events-out)", "recording"], ["Events with hits (--record)", "record"]];
  const rows = files.filter(([, key]) => now[key]).map(([name, key]) => {
    const { written, lost } = now[key];
    return row([make("th", { scope: "row" }, name), `${written}`, short(rate((run) => run[key].written)),
      make("td", lost > 0 ? { class: "bad" } : {}, `${lost}`)]);
  });
  if (rows.length === 0) rows.push(row([make("td", { colspan: 4 }, "Nothing is recorded.")]));
  fill("files", rows);
}

const [WIDTH, HEIGHT, FOOT] = [300, 120, 16];

// One histogram: bars of a power of two each, from `low` to `high` (their exponents).
function chart({ stage, octaves }, low, high) {
  const quantiles = stage === "gaps" ? now.jitter_ns : now.latency_ns[stage];
  const most = Math.log10(1 + Math.max(...octaves.map(([, n]) => n), 1));
  const x = (ns) => (WIDTH * (Math.log2(ns) - low)) / (high - low);
  const told = ["p50", "p99", "p9999", "max"].map((name) =>
    `${name === "p9999" ? "p99.99" : name} ${time(quantiles[name])}`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${stage}: ${told}` });
  svg.append(shape("path", { class: "axis", d: `M0 ${HEIGHT - FOOT}H${WIDTH}` }));
  for (const [top, n] of octaves) {
    if (n === 0) continue;
    const height = ((HEIGHT - FOOT - 4) * Math.log10(1 + n)) / most;
    const [left, right] = [x((top + 1) / 2), x(top + 1)];
    svg.append(shape("rect", { x: left + 0.5, width: Math.max(1, right - left - 1), y: HEIGHT - FOOT - height, height }));
  }
  for (let ns = 1e2; ns < 2 ** high; ns *= 10) {
    // Not where the text would be cut.
    if (x(ns) > 12 && x(ns) < WIDTH - 20) svg.append(shape("text", { x: x(ns), y: HEIGHT - 3, "text-anchor": "middle" }, time(ns)));
  }
  if (stage === "total") {
    svg.append(shape("path", { class: "budget", d: `M${x(now.deadline.budget_ns)} 0V${HEIGHT - FOOT}` }));
  }
  const figure = make("figure");
  figure.append(make("h3", {}, stage), svg, make("figcaption", {}, quantiles.count ? told : "nothing yet"));
  return figure;
}

function showLatency() {
  const tops = now.histograms.flatMap(({ octaves }) => octaves.filter(([, n]) => n > 0).map(([top]) => Math.log2(top + 1)));
  const budget = Math.log2(now.deadline.budget_ns);
  const [low, high] = [Math.min(...tops, 8) - 1, Math.max(...tops, Math.ceil(budget) + 1)];
  by("latency").replaceChildren(...now.histograms.map((histogram) => chart(histogram, low, high)));
}

// The event display.

const shown = { events: [], at: null, live: true, filter: "all", x: 0, y: 0, scale: 1 };
const disks = [by("disk0"), by("disk1")];
const layers = [];
let plane = null;

const wanted = () => shown.events.filter(({ accepted }) =>
  shown.filter === "all" || accepted === (shown.filter === "accepted"));

// The light cones of a disk, as one path; y upwards.
function showPlane() {
  const radius = plane.pitch_mm / 2 - 1;
  const circle = ([x, y]) => `M${x - radius} ${y}a${radius} ${radius} 0 1 0 ${2 * radius} 0a${radius} ${radius} 0 1 0 ${-2 * radius} 0`;
  for (const [i, svg] of disks.entries()) {
    const tubes = plane.positions_mm.slice(i * plane.per_disk, (i + 1) * plane.per_disk);
    const upright = shape("g", { transform: "scale(1 -1)" });
    layers[i] = shape("g");
    upright.append(shape("path", { class: "tubes", d: tubes.map(circle).join("") }), layers[i]);
    const scale = shape("g", { class: "scale" });
    scale.append(shape("path", { d: `M${10 - HALF} ${HALF - 12}v6h100v-6` }),
      shape("text", { x: 60 - HALF, y: HALF - 14, "text-anchor": "middle" }, "100 mm"));
    svg.replaceChildren(upright, scale);
  }
  look();
}

function look() {
  const half = HALF / shown.scale;
  const room = HALF - half;
  shown.x = Math.min(room, Math.max(-room, shown.x));
  shown.y = Math.min(room, Math.max(-room, shown.y));
  for (const svg of disks) {
    svg.setAttribute("viewBox", `${shown.x - half} ${shown.y - half} ${2 * half} ${2 * half}`);
    svg.classList.toggle("zoomed", shown.scale > 1);
  }
}

function zoom(factor) {
  shown.scale = Math.min(16, Math.max(1, shown.scale * factor));
  look();
}

function showEvent() {
  const list = wanted();
  let at = list.findIndex(({ number }) => number === shown.at);
  if (shown.live || at < 0) at = list.length - 1;
  const event = list[at];
  shown.at = event?.number ?? null;
  by("previous").disabled = !(at > 0);
  by("next").disabled = !(at >= 0 && at < list.length - 1);
  by("live").setAttribute("aria-pressed", shown.live);
  by("caption").setAttribute("aria-live", shown.live ? "off" : "polite");
  for (const layer of layers) layer.replaceChildren();
  by("rings").replaceChildren();
  by("caption").dataset.number = shown.at ?? "";
  if (!event) {
    by("caption").textContent = "No such event yet.";
    return;
  }
  const word = event.accepted ? "accepted" : "rejected";
  by("caption").replaceChildren(`Event ${event.number} at slot ${event.timestamp}: `,
    make("strong", { class: word }, word),
    `, ${many(event.hits.length, "hit")}, ${many(event.rings.length, "ring")}${event.complete ? "" : ", incomplete"}.`);
  const fine = plane.fine_ns;
  for (const [tube, at] of event.hits) {
    const [x, y] = plane.positions_mm[tube] ?? [0, 0];
    const hit = shape("circle", { class: "hit", cx: x, cy: y, r: plane.pitch_mm / 2 - 2 });
    hit.append(shape("title", {}, `PM ${tube}, ${(at * fine).toFixed(1)} ns`));
    layers[Math.floor(tube / plane.per_disk)]?.append(hit);
  }
  for (const { disk, x, y, r } of event.rings) {
    layers[disk]?.append(shape("circle", { class: "ring", cx: x, cy: y, r }),
      shape("path", { class: "centre", d: `M${x - 6} ${y}h12M${x} ${y - 6}v12` }));
  }
  fill("rings", event.rings.map((ring) => row([
    make("th", { scope: "row" }, plane.disks[ring.disk]), `${ring.x.toFixed(1)}, ${ring.y.toFixed(1)}`,
    ring.r.toFixed(1), `${ring.hits}`, ring.chi2.toFixed(1), (ring.time * fine).toFixed(1),
    (ring.time_spread * fine).toFixed(2)])));
}

function step(by) {
  const list = wanted();
  const at = list.findIndex(({ number }) => number === shown.at) + by;
  if (!list[at]) return;
  shown.live = false;
  shown.at = list[at].number;
  showEvent();
}

function listen() {
  by("previous").addEventListener("click", () => step(-1));
  by("next").addEventListener("click", () => step(1));
  by("live").addEventListener("click", () => {
    shown.live = !shown.live;
    showEvent();
  });
  by("filter").addEventListener("change", ({ target }) => {
    shown.filter = target.value;
    showEvent();
  });
  by("closer").addEventListener("click", () => zoom(1.5));
  by("wider").addEventListener("click", () => zoom(1 / 1.5));
  by("whole").addEventListener("click", () => zoom(0));
  const far = () => HALF / (5 * shown.scale);
  const keys = {
    "+": () => zoom(1.5), "=": () => zoom(1.5), "-": () => zoom(1 / 1.5), 0: () => zoom(0),
    ArrowLeft: () => { shown.x -= far(); }, ArrowRight: () => { shown.x += far(); },
    ArrowUp: () => { shown.y -= far(); }, ArrowDown: () => { shown.y += far(); },
  };
  document.addEventListener("keydown", (key) => {
    if (key.ctrlKey || key.altKey || key.metaKey || key.target.tagName === "SELECT") return;
    if (key.key === "p") step(-1);
    if (key.key === "n") step(1);
  });
  for (const svg of disks) {
    svg.addEventListener("keydown", (key) => {
      if (!(key.key in keys) || key.ctrlKey) return;
      keys[key.key]();
      look();
      key.preventDefault();
    });
    svg.addEventListener("wheel", (wheel) => {
      // Without the key the wheel scrolls the page.
      if (!wheel.ctrlKey) return;
      zoom(wheel.deltaY < 0 ? 1.2 : 1 / 1.2);
      wheel.preventDefault();
    }, { passive: false });
    svg.addEventListener("pointermove", (move) => {
      if (move.buttons !== 1 || shown.scale === 1) return;
      const mm = (2 * HALF) / shown.scale / svg.clientWidth;
      shown.x -= move.movementX * mm;
      shown.y -= move.movementY * mm;
      look();
    });
  }
}

// Asking.

async function ask(what) {
  const answer = await fetch(what, { signal: AbortSignal.timeout(5 * POLL_MS) });
  if (!answer.ok) throw new Error(`${what}: ${answer.status}`);
  return answer.json();
}

async function poll() {
  const state = by("state");
  try {
    plane ??= await ask("plane.json");
    if (layers.length === 0) showPlane();
    const last = shown.events.at(-1)?.number ?? 0;
    const [run, events] = [await ask("run.json"), await ask(`events.json?after=${last}`)];
    // It has been started again.
    if (now && run.uptime_s < now.uptime_s) [now, shown.events] = [null, []];
    [before, now] = [now, run];
    shown.events = [...shown.events, ...events].slice(-KEEP);
    showTiles();
    showStreams();
    showDrops();
    showRules();
    showFiles();
    showLatency();
    if (shown.live || shown.at === null) showEvent();
    state.textContent = `Version ${run.version}, up for ${Math.floor(run.uptime_s)} s.`;
    state.className = "";
  } catch {
    state.textContent = "The trigger does not answer; asking again.";
    state.className = "lost";
  }
}

async function main() {
  listen();
  for (;;) {
    // What nobody sees is not asked for.
    if (!document.hidden) await poll();
    await new Promise((resume) => setTimeout(resume, POLL_MS));
  }
}

main();
