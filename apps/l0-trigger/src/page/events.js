// The event display.
"use strict";

// Events that can be stepped through.
const KEEP = 256;
// Half the side of the picture of a disk, in mm: its rim is at 295 mm.
const HALF = 310;

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
  for (const id of ["rings", "hits", "times"]) by(id).replaceChildren();
  by("caption").dataset.number = shown.at ?? "";
  if (!event) {
    by("caption").textContent = "No such event yet.";
    return;
  }
  const word = event.accepted ? "accepted" : "rejected";
  const { day, at: decided } = clock(event.decided_unix_s, 3);
  by("caption").replaceChildren(`Event ${event.number} at slot ${event.timestamp}, decided on ${day} at ${decided} UTC: `,
    make("strong", { class: word }, word),
    `, ${many(event.hits.length, "hit")}, ${many(event.rings.length, "ring")}${event.complete ? "" : ", incomplete"}.`);
  const hits = hitsOf(event);
  for (const hit of hits) {
    const picture = shape("circle", { class: hit.class, cx: hit.x, cy: hit.y, r: plane.pitch_mm / 2 - 2 });
    picture.append(shape("title", {}, hit.told));
    layers[hit.disk]?.append(picture);
  }
  for (const [n, { disk, x, y, r }] of event.rings.entries()) {
    layers[disk]?.append(shape("circle", { class: `ring ${colour(n)}`, cx: x, cy: y, r }),
      shape("path", { class: `centre ${colour(n)}`, d: `M${x - 6} ${y}h12M${x} ${y - 6}v12` }),
      shape("text", { class: `number ${colour(n)}`, x: x + 9, y: -y - 5, transform: "scale(1 -1)" }, `${n + 1}`));
  }
  showTimes(hits);
  showRings(event);
  showHits(hits);
}

// The hits of an event with their labels: colour and number are those of their ring.
function hitsOf(event) {
  return event.hits.map(([tube, at], i) => {
    const [x, y] = plane.positions_mm[tube] ?? [0, 0];
    const ring = event.ring_of_hit[i];
    const ns = (at * plane.fine_ns).toFixed(1);
    return {
      tube, x, y, ns, disk: Math.floor(tube / plane.per_disk), of: ring === null ? "none" : `${ring + 1}`,
      class: `hit ${ring === null ? "free" : colour(ring)}`,
      told: `PM ${tube}, ${ns} ns, ${ring === null ? "on no ring" : `ring ${ring + 1}`}`,
    };
  });
}

// When the hits were: a line for each, those of a disk in a row.
function showTimes(hits) {
  const svg = by("times");
  // In pixels: texts are as large as elsewhere.
  const [width, high, left] = [svg.clientWidth || 600, 24, 60];
  const slots = Math.max(1, Math.ceil(Math.max(...hits.map(({ ns }) => ns), 0) / 25));
  const x = (ns) => left + ((width - left - 20) * ns) / (25 * slots);
  const foot = high * disks.length;
  svg.setAttribute("viewBox", `0 0 ${width} ${foot + 18}`);
  const rows = plane.disks.map((name, disk) => shape("text", { x: 0, y: high * (disk + 0.7) }, name));
  const ticks = [0, 5, 10, 15, 20, 25].map((tick) => shape("text",
    { x: x(tick * slots), y: foot + 14, "text-anchor": "middle" }, `${tick * slots}${tick === 25 ? " ns" : ""}`));
  const lines = hits.map((hit) => {
    const line = shape("path", { class: hit.class, d: `M${x(hit.ns)} ${high * hit.disk + 3}v${high - 6}` });
    line.append(shape("title", {}, hit.told));
    return line;
  });
  svg.replaceChildren(shape("path", { class: "axis", d: `M${left} ${foot}H${width - 20}` }), ...rows, ...ticks, ...lines);
}

function showRings(event) {
  const fine = plane.fine_ns;
  fill("rings", event.rings.map((ring, n) => {
    const name = make("th", { scope: "row" });
    name.append(key(n), `${n + 1}, ${plane.disks[ring.disk]}`);
    return row([name, `${ring.x.toFixed(1)}, ${ring.y.toFixed(1)}`, ring.r.toFixed(1), `${ring.hits}`,
      ring.chi2.toFixed(1), (ring.time * fine).toFixed(1), (ring.time_spread * fine).toFixed(2)]);
  }));
}

function showHits(hits) {
  fill("hits", [...hits].sort((a, b) => a.ns - b.ns).map((hit) => row([
    make("th", { scope: "row" }, `${hit.tube}`), plane.disks[hit.disk] ?? "–", hit.ns, hit.of])));
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
