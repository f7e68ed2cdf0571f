// The radial curve: of the latest image that has one, and the mean of the run.
"use strict";

// Names of the units that pyFAI has.
const UNITS = {
  "q_nm^-1": "q (1/nm)", "q_A^-1": "q (1/Å)", "2th_rad": "2θ (rad)", "2th_deg": "2θ (°)", r_mm: "radius (mm)",
};
// Room for numbers, in pixels: left, right, above, below.
const ROOM = { left: 56, right: 12, top: 10, foot: 36 };

const curves = { last: null };

// Numbers at round steps from `low` to `high`, some `count` of them.
function roundTicks(low, high, count) {
  const rough = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const ticks = [];
  for (let n = Math.ceil(low / step); n * step <= high; n += 1) ticks.push(+(n * step).toPrecision(12));
  return ticks;
}

// Powers of ten from `low` to `high`.
function powerTicks(low, high) {
  const ticks = [];
  for (let n = Math.ceil(Math.log10(low)); 10 ** n <= high; n += 1) ticks.push(10 ** n);
  return ticks.length > 1 ? ticks : [low, high];
}

// A list may be longer than that of a call's arguments may be.
const largest = (list) => list.reduce((a, b) => Math.max(a, b), -Infinity);
const smallest = (list) => list.reduce((a, b) => Math.min(a, b), Infinity);

async function askForCurves() {
  if (!detector()?.curves) return null;
  const answer = await answered("curve.json");
  return answer.status === 204 ? null : answer.json();
}

function showCurve() {
  by("curve-section").hidden = !detector().curves;
  const { last: curve } = curves;
  if (!curve) return;
  const svg = by("curve");
  const [width, height] = [svg.clientWidth || 600, svg.clientHeight || 288];
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const { radial, unit, frame, images } = curve;
  const lines = [["latest", curve.last], ["mean", curve.mean]];
  const values = lines.flatMap(([, line]) => line).filter((value) => value !== null);
  const isLog = by("curve-scale").value === "log";
  const positive = values.filter((value) => value > 0);
  const top = Math.max(largest(values), 0) * (isLog ? 1.2 : 1.05) || 1;
  const bottom = isLog ? Math.max(Math.min(smallest(positive), top / 10), top * 1e-5) : Math.min(0, smallest(values));
  const [low, high] = [radial[0], radial.at(-1)];
  const x = (at) => ROOM.left + ((width - ROOM.left - ROOM.right) * (at - low)) / (high - low || 1);
  const share = isLog ? (value) => Math.log(Math.max(value, bottom) / bottom) / Math.log(top / bottom)
    : (value) => (value - bottom) / (top - bottom);
  const foot = height - ROOM.foot;
  const y = (value) => foot - (foot - ROOM.top) * share(value);
  const parts = [shape("path", { class: "axis", d: `M${ROOM.left} ${ROOM.top}V${foot}H${width - ROOM.right}` })];
  for (const tick of roundTicks(low, high, Math.max(2, Math.floor(width / 90)))) {
    parts.push(shape("path", { class: "axis", d: `M${x(tick)} ${foot}v4` }),
      shape("text", { x: x(tick), y: foot + 16, "text-anchor": "middle" }, digits(tick)));
  }
  for (const tick of isLog ? powerTicks(bottom, top) : roundTicks(bottom, top, 5)) {
    parts.push(shape("path", { class: "axis", d: `M${ROOM.left} ${y(tick)}H${width - ROOM.right}`, "stroke-opacity": 0.5 }),
      shape("text", { x: ROOM.left - 6, y: y(tick) + 4, "text-anchor": "end" }, digits(tick)));
  }
  parts.push(shape("text", { class: "unit", x: (ROOM.left + width) / 2, y: height - 4, "text-anchor": "middle" }, UNITS[unit] ?? unit),
    shape("text", { x: 0, y: 0, transform: `translate(12 ${(ROOM.top + foot) / 2}) rotate(-90)`, "text-anchor": "middle" }, "photons/pixel"));
  lines.forEach(([, line], n) => {
    const points = line.map((value, i) => `${i ? "L" : "M"}${x(radial[i]).toFixed(1)} ${y(value).toFixed(1)}`);
    parts.push(shape("path", { class: `line ${colour(n)}`, d: points.join("") }));
  });
  svg.replaceChildren(...parts);
  const peak = curve.mean.indexOf(largest(curve.mean));
  const caption = by("curve-caption");
  caption.dataset.peak = peak;
  caption.replaceChildren(key(0), `frame ${frame}, ${age(curve.age_s)} `, key(1),
    `mean of ${many(images, "image")}, largest at ${digits(radial[peak])}, ${UNITS[unit] ?? unit}`);
}
