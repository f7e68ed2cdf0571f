// Pictures of numbers: what happened over time, and histograms of times.
"use strict";

const [WIDTH, HEIGHT, FOOT, HEAD] = [300, 120, 16, 14];
// Seconds of the last minute.
const MINUTE = 60;

// What happened between notes, a second: pairs of two moments with a rate.
function rates(notes, of) {
  return notes.slice(1).map((note, i) => {
    const seconds = note.uptime_s - notes[i].uptime_s;
    return [notes[i].uptime_s, note.uptime_s, seconds > 0 ? Math.max(0, (of(note) - of(notes[i])) / seconds) : 0];
  });
}

// Lines of rates from a moment `from` to the newest note, which is at the right edge. `lines` are
// names and what to take of a note; `ticks` are texts, evenly from left to right.
function plot({ name, notes, from, lines, ticks }) {
  const to = notes.at(-1)?.uptime_s ?? from + 1;
  const x = (at) => (WIDTH * Math.max(0, at - from)) / Math.max(to - from, 1e-9);
  const drawn = lines.map(([, of]) => rates(notes, of).filter(([, end]) => end > from));
  const most = Math.max(...drawn.flat().map(([, , rate]) => rate), 0);
  const foot = HEIGHT - FOOT;
  const y = (rate) => foot - ((foot - HEAD) * rate) / (most || 1);
  const newest = lines.map(([line], i) => `${line} ${short(drawn[i].at(-1)?.[2] ?? 0)}/s`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot", "aria-label": `${name}: now ${newest}` });
  svg.append(shape("path", { class: "axis", d: `M0 ${foot}H${WIDTH}M0 ${HEAD}H${WIDTH}` }),
    shape("text", { x: 0, y: HEAD - 3 }, `${short(most)}/s`));
  ticks.forEach((tick, i) => {
    const at = (WIDTH * i) / (ticks.length - 1);
    const anchor = i === 0 ? "start" : i === ticks.length - 1 ? "end" : "middle";
    svg.append(shape("text", { x: at, y: HEIGHT - 3, "text-anchor": anchor }, tick));
  });
  drawn.forEach((steps, i) => {
    const d = steps.map(([begin, end, rate], k) => `${k ? "L" : "M"}${x(begin)} ${y(rate)}H${x(end)}`).join("");
    svg.append(shape("path", { class: `line ${colour(i)}`, d }));
  });
  const told = make("figcaption");
  lines.forEach(([line], i) => told.append(key(i), `${line} `));
  const figure = make("figure");
  figure.append(make("h3", {}, name), svg, told);
  return figure;
}

const AGO = ["60 s ago", "45", "30", "15", "now"];

// A plot of the last minute: it fills from the right.
function ofMinute(name, lines) {
  const { notes } = minute;
  return plot({ name, notes, from: (notes.at(-1)?.uptime_s ?? 0) - MINUTE, lines, ticks: AGO });
}

// The same of the whole run, up to now.
function ofRun(name, lines) {
  const newest = minute.notes.at(-1);
  const notes = past.notes.filter((note) => note.uptime_s < newest?.uptime_s).concat(newest ?? []);
  const start = now.about.started_unix_s;
  const at = (share) => clock(start + share * (newest?.uptime_s ?? 0)).at;
  return plot({ name, notes, from: 0, lines, ticks: [at(0), at(0.5), `${at(1)} UTC`] });
}

const dropped = ({ dropped }) => sum(Object.values(dropped));

const RATES = [
  ["Events", [["built", ({ events }) => events], ["accepted", ({ accepted }) => accepted]]],
  ["Frames", [["from the wire", ({ frames }) => frames]]],
  ["Faults", [["dropped", dropped], ["missing", ({ missing }) => missing], ["late decisions", (note) => note.late_decisions]]],
];

function showRates() {
  by("minute").replaceChildren(...RATES.map(([name, lines]) => ofMinute(`${name}, last minute`, lines)));
  by("past").replaceChildren(...RATES.map(([name, lines]) => ofRun(`${name}, whole run`, lines)));
}

// A small one without words, for a table.
function spark(of) {
  const steps = rates(minute.notes, of);
  const most = Math.max(...steps.map(([, , rate]) => rate), 1);
  const x = (at) => 100 * Math.max(0, 1 - ((minute.notes.at(-1)?.uptime_s ?? 0) - at) / MINUTE);
  const points = steps.map(([, end, rate]) => `${x(end)},${29 - (28 * rate) / most}`);
  const svg = shape("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" });
  svg.append(shape("polyline", { points: points.join(" ") }));
  return svg;
}

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
    const height = ((HEIGHT - FOOT - HEAD) * Math.log10(1 + n)) / most;
    const [left, right] = [x((top + 1) / 2), x(top + 1)];
    svg.append(shape("rect", { x: left + 0.5, width: Math.max(1, right - left - 1), y: HEIGHT - FOOT - height, height }));
  }
  for (let ns = 1e2; ns < 2 ** high; ns *= 10) {
    // Not where the text would be cut.
    if (x(ns) > 12 && x(ns) < WIDTH - 20) svg.append(shape("text", { x: x(ns), y: HEIGHT - 3, "text-anchor": "middle" }, time(ns)));
  }
  if (stage === "total") {
    const at = x(now.deadline.budget_ns);
    const side = at > WIDTH / 2 ? { x: at - 4, "text-anchor": "end" } : { x: at + 4 };
    svg.append(shape("path", { class: "budget", d: `M${at} 0V${HEIGHT - FOOT}` }),
      shape("text", { ...side, y: 10 }, `budget ${time(now.deadline.budget_ns)}`));
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
