// Pictures of numbers: what happened over time, and histograms of times.
"use strict";

const [WIDTH, HEIGHT, FOOT, HEAD] = [300, 120, 16, 14];
// Seconds of the last minute.
const MINUTE = 60;

// What happened between notes, of `per` if it is given, else a second: pairs of two moments with a
// rate.
function rates(notes, of, per = ({ uptime_s }) => uptime_s) {
  return notes.slice(1).map((note, i) => {
    const whole = per(note) - per(notes[i]);
    return [notes[i].uptime_s, note.uptime_s, whole > 0 ? Math.max(0, (of(note) - of(notes[i])) / whole) : 0];
  });
}

const aSecond = (n) => `${short(n)}/s`;

// Lines of rates from a moment `from` to the newest note, which is at the right edge. `lines` are
// names, what to take of a note, and what that is a part of, if not of a second; `ticks` are texts,
// evenly from left to right. `most` is at the top, if it is given; `say` makes text of a rate.
function plot({ name, notes, from, lines, ticks, most: top, say = aSecond }) {
  const to = notes.at(-1)?.uptime_s ?? from + 1;
  const x = (at) => (WIDTH * Math.max(0, at - from)) / Math.max(to - from, 1e-9);
  const drawn = lines.map(([, of, per]) => rates(notes, of, per).filter(([, end]) => end > from));
  const most = top ?? Math.max(...drawn.flat().map(([, , rate]) => rate), 0);
  const foot = HEIGHT - FOOT;
  const y = (rate) => foot - ((foot - HEAD) * rate) / (most || 1);
  const newest = lines.map(([line], i) => `${line} ${say(drawn[i].at(-1)?.[2] ?? 0)}`).join(", ");
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", class: "plot", "aria-label": `${name}: now ${newest}` });
  svg.append(shape("path", { class: "axis", d: `M0 ${foot}H${WIDTH}M0 ${HEAD}H${WIDTH}` }),
    shape("text", { x: 0, y: HEAD - 3 }, say(most)));
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
function ofMinute(name, lines, more = {}) {
  const { notes } = minute;
  return plot({ name, notes, from: (notes.at(-1)?.uptime_s ?? 0) - MINUTE, lines, ticks: AGO, ...more });
}

// The same of the whole run, up to now.
function ofRun(name, lines, more = {}) {
  const newest = minute.notes.at(-1);
  const notes = past.notes.filter((note) => note.uptime_s < newest?.uptime_s).concat(newest ?? []);
  const start = now.about.started_unix_s;
  const at = (share) => clock(start + share * (newest?.uptime_s ?? 0)).at;
  return plot({ name, notes, from: 0, lines, ticks: [at(0), at(0.5), `${at(1)} UTC`], ...more });
}

const dropped = ({ dropped }) => sum(Object.values(dropped));

// The program's RATES: names, lines, and what else a plot takes.
function showRates() {
  by("minute").replaceChildren(...RATES.map(([name, lines, more]) => ofMinute(`${name}, last minute`, lines, more)));
  by("past").replaceChildren(...RATES.map(([name, lines, more]) => ofRun(`${name}, whole run`, lines, more)));
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

// One histogram: bars of a power of two each, from `low` to `high` (their exponents). `budget` is the
// longest total time that is allowed, in ns, if there is one.
function chart({ stage, times, octaves }, low, high, budget) {
  const most = Math.log10(1 + Math.max(...octaves.map(([, n]) => n), 1));
  const x = (ns) => (WIDTH * (Math.log2(ns) - low)) / (high - low);
  const told = ["p50", "p99", "p9999", "max"].map((name) =>
    `${name === "p9999" ? "p99.99" : name} ${time(times[name])}`).join(", ");
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
  if (stage === "total" && budget) {
    const at = x(budget);
    const side = at > WIDTH / 2 ? { x: at - 4, "text-anchor": "end" } : { x: at + 4 };
    svg.append(shape("path", { class: "budget", d: `M${at} 0V${HEIGHT - FOOT}` }),
      shape("text", { ...side, y: 10 }, `budget ${time(budget)}`));
  }
  const figure = make("figure");
  figure.append(make("h3", {}, stage), svg, make("figcaption", {}, times.count ? told : "nothing yet"));
  return figure;
}

function showLatency() {
  const budget = now.deadline?.budget_ns;
  const tops = now.histograms.flatMap(({ octaves }) => octaves.filter(([, n]) => n > 0).map(([top]) => Math.log2(top + 1)));
  const [low, high] = [Math.min(...tops, 8) - 1, Math.max(...tops, budget ? Math.ceil(Math.log2(budget)) + 1 : 9)];
  by("latency").replaceChildren(...now.histograms.map((histogram) => chart(histogram, low, high, budget)));
}
