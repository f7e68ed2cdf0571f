// The image: asks for the part of it that is seen, paints it, and marks peaks and rows of lost packets.
"use strict";

// Pause after the last movement, in ms, before the part that is seen is asked for.
const SETTLE_MS = 120;
// CSS pixels of an image pixel at the closest, and radius of a peak's mark.
const [CLOSEST, MARK] = [48, 9];
// Planck's constant times the speed of light, in eV m.
const HC = 1.23984198e-6;

// `row` and `column` are at the middle of the view; `zoom` is 1 for the whole image. `picture` is the
// last answer, and `tile` a canvas with its colours.
const look = { live: true, zoom: 1, row: 0, column: 0, picture: null, tile: null, range: [0, 1], timer: 0, size: [0, 0] };

const settings = () => ({
  view: by("view").value, scale: by("scale").value, map: by("map").value, auto: by("auto").checked,
});

const detector = () => now?.detector ?? null;

// CSS pixels of a pixel of the image.
function scaleOf() {
  const { rows, columns } = detector();
  const [width, height] = look.size;
  return Math.min(width / columns, height / rows) * look.zoom;
}

// Gives the canvas the shape of the image, within that of the window.
function fitFrame() {
  const { rows, columns } = detector();
  const width = Math.max(1, by("frame").clientWidth);
  const height = Math.round(Math.max(200, Math.min((width * rows) / columns, 0.8 * window.innerHeight)));
  const ratio = window.devicePixelRatio || 1;
  const canvas = by("image");
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) {
    [canvas.width, canvas.height] = [w, h];
    canvas.style.height = `${height}px`;
  }
  look.size = [width, height];
}

// Keeps the view on the image.
function hold() {
  const { rows, columns } = detector();
  const [width, height] = look.size;
  const most = Math.max(1, CLOSEST / Math.min(width / columns, height / rows));
  look.zoom = Math.min(most, Math.max(1, look.zoom));
  const scale = scaleOf();
  const keep = (at, side, pixels) => {
    const half = pixels / scale / 2;
    return half >= side / 2 ? side / 2 : Math.min(side - half, Math.max(half, at));
  };
  look.row = keep(look.row, rows, height);
  look.column = keep(look.column, columns, width);
}

// The corner of the view, in pixels of the image.
function corner() {
  const scale = scaleOf();
  const [width, height] = look.size;
  return { scale, left: look.column - width / scale / 2, top: look.row - height / scale / 2 };
}

// What is asked for: the part that is seen, with as many pixels as the screen has.
function wantedPart() {
  const { rows, columns } = detector();
  const { scale, left, top } = corner();
  const [width, height] = look.size;
  const factor = Math.max(1, Math.floor(1 / (scale * (window.devicePixelRatio || 1))));
  // Squares begin at multiples of the factor, so that they stay the same while the view moves.
  const from = (at) => Math.max(0, Math.floor(at / factor) * factor);
  const [row, column] = [from(top), from(left)];
  const to = (at, side) => Math.min(side, Math.ceil(at / factor) * factor);
  return {
    row, column, factor,
    rows: to(top + height / scale, rows) - row, columns: to(left + width / scale, columns) - column,
  };
}

// An answer: its header, and pixels.
function parsed(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  return { ...header, heard: performance.now(), values: new Float32Array(buffer, 4 + length) };
}

async function askForImage() {
  if (!detector()) return null;
  fitFrame();
  hold();
  // An image that is held is not to be replaced by a later one.
  const held = look.live || !look.picture ? {} : { frame: look.picture.frame };
  const query = new URLSearchParams({ view: by("view").value, ...wantedPart(), ...held });
  const answer = await answered(`image.bin?${query}`);
  return answer.status === 204 ? null : parsed(await answer.arrayBuffer());
}

// Asks once, after the last of several movements.
function askSoon() {
  clearTimeout(look.timer);
  look.timer = setTimeout(async () => {
    const picture = await askForImage().catch(() => null);
    if (picture) showImage(picture);
  }, SETTLE_MS);
}

// Shows an answer, unless another view has been chosen meanwhile.
function showImage(picture) {
  if (picture.view !== by("view").value) return;
  look.picture = picture;
  colourImage();
}

// Paints the pixels of the picture, by the chosen colours.
function colourImage() {
  const { picture } = look;
  const { scale, map, auto } = settings();
  look.range = usable(auto && picture ? rangeOf(picture.levels, scale) : look.range, scale);
  if (picture) {
    look.tile ??= document.createElement("canvas");
    [look.tile.width, look.tile.height] = [picture.columns, picture.rows];
    const context = look.tile.getContext("2d");
    const data = context.createImageData(picture.columns, picture.rows);
    paint(picture.values, new Uint32Array(data.data.buffer), look.range, scale, map);
    context.putImageData(data, 0, 0);
  }
  showScale();
  drawImage();
}

// Draws the painted part where it is in the view.
function drawImage() {
  if (!detector()) return;
  fitFrame();
  hold();
  const canvas = by("image");
  const context = canvas.getContext("2d");
  const ratio = canvas.width / look.size[0];
  const { scale, left, top } = corner();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const { picture } = look;
  if (picture) {
    const [row, column] = picture.region;
    const pixel = scale * ratio;
    context.imageSmoothingEnabled = pixel * picture.factor < 1;
    context.drawImage(look.tile, (column - left) * pixel, (row - top) * pixel,
      picture.columns * picture.factor * pixel, picture.rows * picture.factor * pixel);
  }
  canvas.classList.toggle("zoomed", look.zoom > 1);
  drawMarks();
  showCaption();
}

// Peaks, rows of lost packets, borders of the modules and the beam, in pixels of the image.
function drawMarks() {
  const svg = by("overlay");
  const { rows, columns, module_rows, beam } = detector();
  const { scale, left, top } = corner();
  const [width, height] = look.size;
  svg.setAttribute("viewBox", `${left} ${top} ${width / scale} ${height / scale}`);
  const marks = [];
  const lines = Array.from({ length: Math.ceil(rows / module_rows) - 1 }, (_, i) => `M0 ${(i + 1) * module_rows}H${columns}`);
  marks.push(shape("path", { class: "modules", d: lines.join("") }));
  const arm = MARK / scale;
  // The centre of the first pixel is at 0 in numbers and at 0.5 in the picture.
  const [y, x] = beam.map((at) => at + 0.5);
  marks.push(shape("path", { class: "beam", d: `M${x - arm} ${y}h${2 * arm}M${x} ${y - arm}v${2 * arm}` }));
  const image = look.picture?.image;
  if (image?.missing_rows.length) {
    const step = 7 / scale;
    const hatch = shape("pattern", { id: "hatch", width: step, height: step, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    hatch.append(shape("path", { class: "hatch", d: `M0 0V${step}`, "stroke-width": step / 2 }));
    const definitions = shape("defs");
    definitions.append(hatch);
    marks.push(definitions, ...image.missing_rows.map(([first, count]) =>
      shape("rect", { class: "missing", x: 0, y: first, width: columns, height: count, fill: "url(#hatch)" })));
  }
  if (image && by("marks").checked) {
    const r = Math.max(MARK / scale, 5);
    for (const [row, column] of image.peaks) marks.push(shape("circle", { class: "peak", cx: column + 0.5, cy: row + 0.5, r }));
  }
  svg.replaceChildren(...marks);
}

const age = (seconds) => (seconds < 1.5 ? "now" : `${Math.round(seconds)} s ago`);

function showCaption() {
  const { picture } = look;
  const caption = by("caption");
  if (!picture) {
    caption.textContent = `There is no ${by("view").selectedOptions[0].text} yet.`;
    return;
  }
  const { view, frame, images, levels, image, factor } = picture;
  const at = age(picture.age_s + (performance.now() - picture.heard) / 1000);
  caption.dataset.frame = frame;
  const unit = detector().unit === "photons" ? " photons" : "";
  const codes = `${many(levels.bad, "pixel")} without a value, ${levels.saturated} saturated`;
  const scaled = factor > 1 ? ` Shown 1 : ${factor}.` : "";
  if (!image) {
    const what = view === "mean" ? "Mean" : "Maximum";
    caption.textContent = `${what} of ${many(images, "image")}, ${at}: up to ${digits(levels.largest)}${unit}; ${codes}.${scaled}`;
    return;
  }
  const word = make("strong", { class: image.vetoed ? "vetoed" : "kept" }, image.vetoed ? "vetoed" : "kept");
  const lost = image.missing_packets ? `; ${many(image.missing_packets, "packet")} lost` : "";
  const total = detector().unit === "photons" ? `${short(levels.sum)} photons, ` : "";
  caption.replaceChildren(`Frame ${frame}, ${at}: `, word,
    `, ${many(image.all_peaks, "peak")}; ${total}up to ${digits(levels.largest)}; ${codes}${lost}.${scaled}`);
}

// The colour scale, and its values.
function showScale() {
  const { scale, map, auto } = settings();
  const bar = by("colours");
  [bar.width, bar.height] = [COLOURS, 1];
  const context = bar.getContext("2d");
  const data = context.createImageData(COLOURS, 1);
  new Uint32Array(data.data.buffer).set(colourMap(map));
  context.putImageData(data, 0, 0);
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((at) => digits(+valueAt(look.range, scale, at).toPrecision(3)));
  const unit = detector()?.unit === "photons" ? (look.picture?.view === "mean" ? " photons/image" : " photons") : "";
  by("ticks").replaceChildren(...ticks.map((tick, i) => make("span", {}, i === ticks.length - 1 ? tick + unit : tick)));
  for (const [id, i] of [["low", 0], ["high", 1]]) {
    by(id).disabled = auto;
    if (document.activeElement !== by(id)) by(id).value = digits(+look.range[i].toPrecision(4));
  }
  document.querySelector(".code.bad-pixel").style.background = `rgb(${BAD[map]})`;
}

// The pixel of the image at a place of the canvas, in CSS pixels.
function pixelAt(x, y) {
  const { scale, left, top } = corner();
  return { row: Math.floor(top + y / scale), column: Math.floor(left + x / scale) };
}

// What a value is, in words.
function valueText(value) {
  if (value !== value) return "no value";
  if (value === Infinity) return "saturated";
  if (detector().unit === "photons") return `${digits(value)} photons`;
  const gain = ["G0", "G1", "invalid gain", "G2"][value >> 14];
  return detector().description.includes("JUNGFRAU") ? `${value}: ${gain}, ${value & 0x3fff} ADU` : `${value}`;
}

// 2theta and d of a pixel, for a detector perpendicular to the beam.
function scattering(row, column) {
  const { beam, pixel_m, distance_m, energy_ev } = detector();
  const angle = Math.atan((Math.hypot(row - beam[0], column - beam[1]) * pixel_m) / distance_m);
  const spacing = HC / energy_ev / (2 * Math.sin(angle / 2));
  const d = angle > 0 ? `, d ${(spacing * 1e10).toPrecision(3)} Å` : "";
  return `2θ ${((angle * 180) / Math.PI).toFixed(2)}°${d}`;
}

function showPointer(x, y) {
  const { picture } = look;
  if (!picture) return;
  const { row, column } = pixelAt(x, y);
  const [first, left] = picture.region;
  const r = Math.floor((row - first) / picture.factor);
  const c = Math.floor((column - left) / picture.factor);
  const inside = r >= 0 && c >= 0 && r < picture.rows && c < picture.columns;
  if (!inside) {
    by("pointer").textContent = "Point at a pixel to see its value.";
    return;
  }
  const of = picture.factor > 1 ? ` (${picture.view === "mean" ? "mean" : "largest"} of ${picture.factor} × ${picture.factor})` : "";
  const lost = picture.image?.missing_rows.some(([at, count]) => row >= at && row < at + count);
  const value = lost ? "lost packet" : valueText(picture.values[r * picture.columns + c]);
  by("pointer").textContent = `Row ${row}, column ${column}: ${value}${of}; ${scattering(row, column)}`;
}

// Zooms by a factor; the place (x, y) of the canvas stays where it is.
function zoomImage(factor, x = look.size[0] / 2, y = look.size[1] / 2) {
  if (!detector()) return;
  const before = corner();
  const [row, column] = [before.top + y / before.scale, before.left + x / before.scale];
  look.zoom *= factor;
  hold();
  const scale = scaleOf();
  look.row = row - (y - look.size[1] / 2) / scale;
  look.column = column - (x - look.size[0] / 2) / scale;
  moved();
}

function wholeImage() {
  look.zoom = 1;
  moved();
}

// The view has moved: what is there is drawn at once, and the rest is asked for.
function moved() {
  hold();
  drawImage();
  askSoon();
}

function listenToImage() {
  const canvas = by("image");
  by("live").addEventListener("click", () => {
    look.live = !look.live;
    by("live").setAttribute("aria-pressed", look.live);
    if (look.live) askSoon();
  });
  by("view").addEventListener("change", () => {
    if (!look.live) by("live").click();
    look.picture = null;
    drawImage();
    askSoon();
  });
  for (const id of ["scale", "map", "auto"]) by(id).addEventListener("change", colourImage);
  by("marks").addEventListener("change", drawImage);
  for (const [id, i] of [["low", 0], ["high", 1]]) {
    by(id).addEventListener("change", ({ target }) => {
      const value = Number(target.value);
      if (target.value !== "" && Number.isFinite(value)) look.range[i] = value;
      colourImage();
    });
  }
  by("closer").addEventListener("click", () => zoomImage(1.5));
  by("wider").addEventListener("click", () => zoomImage(1 / 1.5));
  by("whole").addEventListener("click", wholeImage);
  const keys = {
    "+": () => zoomImage(1.5), "=": () => zoomImage(1.5), "-": () => zoomImage(1 / 1.5), 0: wholeImage,
    ArrowLeft: () => { look.column -= far(); moved(); }, ArrowRight: () => { look.column += far(); moved(); },
    ArrowUp: () => { look.row -= far(); moved(); }, ArrowDown: () => { look.row += far(); moved(); },
  };
  const far = () => 80 / scaleOf();
  canvas.addEventListener("keydown", (key) => {
    if (!(key.key in keys) || key.ctrlKey || !detector()) return;
    keys[key.key]();
    key.preventDefault();
  });
  canvas.addEventListener("wheel", (wheel) => {
    // Otherwise the wheel scrolls the page.
    if (!wheel.ctrlKey && document.activeElement !== canvas) return;
    zoomImage(wheel.deltaY < 0 ? 1.2 : 1 / 1.2, wheel.offsetX, wheel.offsetY);
    wheel.preventDefault();
  }, { passive: false });
  canvas.addEventListener("dblclick", ({ offsetX, offsetY }) => zoomImage(2, offsetX, offsetY));
  canvas.addEventListener("pointermove", (move) => {
    if (!detector()) return;
    showPointer(move.offsetX, move.offsetY);
    if (move.buttons !== 1 || look.zoom === 1) return;
    look.column -= move.movementX / scaleOf();
    look.row -= move.movementY / scaleOf();
    moved();
  });
  canvas.addEventListener("pointerleave", () => { by("pointer").textContent = "Point at a pixel to see its value."; });
  window.addEventListener("resize", () => { if (detector()) moved(); });
}
