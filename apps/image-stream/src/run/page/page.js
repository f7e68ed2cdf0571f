// What the page of the image stream has of its own: tiles, tables, and the order of its parts.
"use strict";

const ended = ({ images }) => images.kept + images.vetoed;
const taken = (run) => ended(run) + run.images.dark;
const percent = (rate) => `${(100 * rate).toFixed(1)} %`;

const RATES = [
  ["Images", [["all", ({ images }) => images], ["kept", ({ kept }) => kept]]],
  ["Hit rate", [["kept of all", ({ kept }) => kept, ({ kept, vetoed }) => kept + vetoed]], { most: 1, say: percent }],
  ["Faults", [["partial images", ({ partial }) => partial], ["overrun", ({ overrun }) => overrun],
    ["packets missing", ({ missing }) => missing], ["frames dropped", dropped]]],
];

// The share of the images that were kept, now.
function hitRate() {
  const [kept, all] = [grown((run) => run.images.kept), grown(ended)];
  const { hit_rate: whole } = now;
  return [before ? share(kept, all) : "–", whole === null ? "of no image" : `${percent(whole)} in all`];
}

function tiles() {
  const bytes = (run) => taken(run) * run.raw_bytes;
  const [latency, total] = [now.now.latency_ns, now.histograms.find(({ stage }) => stage === "total")?.times];
  const latencyTotal = total?.count ? `${time(total.p99)} in all` : "not of recordings";
  return [
    counter("Images/s", taken),
    ["GB/s", before ? (rate(bytes) / 1e9).toPrecision(3) : "–", `${short(bytes(now))}B of pixels in all`],
    ["Hit rate", ...hitRate()],
    counter("Peaks/s", (run) => run.images.peaks),
    counter("Partial/s", (run) => run.frames.partial, true),
    counter("Overrun/s", (run) => run.images.overrun, true),
    counter("Packets missing/s", (run) => run.packets.missing, true),
    counter("Dropped/s", (run) => sum(Object.values(run.ledger.dropped)), true),
    ["Latency p99", latency.count ? time(latency.p99) : "–", latencyTotal],
  ];
}

// A row of a counter: what it is, its number, in the last minute, and a second.
function counterRow(name, of, note, isFault) {
  const [first, last] = [minute.notes.at(0), minute.notes.at(-1)];
  const lately = note && last ? short(note(last) - note(first)) : "–";
  const head = make("th", { scope: "row" }, name);
  return row([head, short(of(now)), lately, isFault ? fault(of, () => perSecond(of)) : perSecond(of)]);
}

function showFrames() {
  const frame = (name, isFault) => counterRow(`frames ${name}`, ({ frames }) => frames[name], (note) => note[name], isFault);
  const image = (name, isFault) =>
    counterRow(`images ${name}`, ({ images }) => images[name], name === "dark" || name === "written" ? null : (note) => note[name], isFault);
  fill("frames", [frame("complete"), frame("partial", true), frame("empty", true), frame("discarded", true),
    image("kept"), image("vetoed"), image("dark"), image("written"), image("overrun", true), image("lost", true),
    counterRow("packets missing", ({ packets }) => packets.missing, ({ missing }) => missing, true),
    counterRow("packets duplicate", ({ packets }) => packets.duplicate, null),
    counterRow("stops of reception", ({ stops }) => stops, null)]);
}

// The rows of a table, or a row that says that there is none.
const orNone = (id, rows, columns, none) => fill(id, rows.length ? rows : [row([make("td", { colspan: columns }, none)])]);

const regionText = ({ rows, columns, first_row, first_column }) => `${rows} × ${columns} at ${first_row}, ${first_column}`;

function showReceivers() {
  orNone("receivers", now.receivers.map((receiver, i) => {
    const of = (name) => (run) => run.receivers[i]?.[name] ?? 0;
    return row([make("th", { scope: "row" }, receiver.name),
      make("td", { class: "words" }, receiver.region.map(regionText).join("; ") || "whole image"),
      short(receiver.images), perSecond(of("images")), before ? (rate(of("bytes")) / 1e6).toFixed(1) : "–",
      fault(of("overrun"))]);
  }), 6, "There are no receivers of regions.");
}

function showWorkers() {
  orNone("workers", (now.workers ?? []).map((images, i) =>
    row([make("th", { scope: "row" }, `${i}`), short(images), perSecond((run) => run.workers[i])])), 3,
  "There are no workers: the loop of the images runs the stages.");
}

function showOutputs() {
  const wrong = ["overrun", "refused", "failed", "lost", "stalled_clients"];
  const rows = Object.entries(now.outputs).flatMap(([output, counts]) => Object.keys(counts).map((name) => {
    const of = (run) => run.outputs[output]?.[name] ?? 0;
    return row([make("th", { scope: "row" }, output), name.replace("_", " "), short(of(now)),
      wrong.includes(name) ? fault(of, () => perSecond(of)) : perSecond(of)]);
  }));
  orNone("outputs", rows, 4, "There are no outputs.");
}

// What the run has no data for cannot be chosen.
function showViews() {
  for (const option of by("view").options) {
    option.disabled = ["mean", "maximum"].includes(option.value) && !detector().statistics;
  }
}

const program = {
  name: "The image stream",
  title: "image stream",
  async ask() {
    const image = look.live ? await askForImage() : null;
    return { image, curve: await askForCurves() };
  },
  take({ image, curve }) {
    if (image) showImage(image);
    curves.last = curve ?? curves.last;
  },
  forget() { [look.picture, curves.last] = [null, null]; },
  parts: [showRun, showViews, showTiles, showRates, showFrames, showDrops, showReceivers, showWorkers, showOutputs,
    showCurve, showLatency, drawImage],
};

listenToImage();
main();
