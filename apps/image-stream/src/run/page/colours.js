// Colours of values: maps that are perceptually uniform, linear or logarithmic.
"use strict";

// Matplotlib's viridis and inferno (CC0) as polynomials of degree 6: coefficients of red, green and
// blue, by power. They differ from the tables by 0.004 and 0.01 on average.
const POLYNOMIALS = {
  viridis: [
    [0.2777273272234177, 0.005407344544966578, 0.3340998053353061],
    [0.1050930431085774, 1.404613529898575, 1.384590162594685],
    [-0.3308618287255563, 0.214847559468213, 0.09509516302823659],
    [-4.634230498983486, -5.799100973351585, -19.33244095627987],
    [6.228269936347081, 14.17993336680509, 56.69055260068105],
    [4.776384997670288, -13.74514537774601, -65.35303263337234],
    [-5.435455855934631, 4.645852612178535, 26.3124352495832],
  ],
  inferno: [
    [0.0002189403691192265, 0.001651004631001012, -0.01948089843709184],
    [0.1065134194856116, 0.5639564367884091, 3.932712388889277],
    [11.60249308247187, -3.972853965665698, -15.9423941062914],
    [-41.70399613139459, 17.43639888205313, 44.35414519872813],
    [77.162935699427, -33.40235894210092, -81.80730925738993],
    [-71.31942824499214, 32.62606426397723, 73.20951985803202],
    [25.13112622477341, -12.24266895238567, -23.07032500287172],
  ],
  grey: [[0, 0, 0], [1, 1, 1]],
};

const COLOURS = 256;
// Of pixels without a value, by map, and of saturated ones: colours that are in no map.
const BAD = { viridis: [0x6e, 0x76, 0x81], inferno: [0x6e, 0x76, 0x81], grey: [0x1f, 0x6f, 0xb8] };
const SATURATED = [0xff, 0x00, 0xd4];

// A colour as a pixel of a canvas: bytes R, G, B, A in memory.
const packed = ([r, g, b]) => new Uint32Array(new Uint8Array([r, g, b, 255]).buffer)[0];

// The colours of a map, from 0 to 1.
function colourMap(name) {
  const powers = POLYNOMIALS[name];
  return Uint32Array.from({ length: COLOURS }, (_, i) => {
    const at = i / (COLOURS - 1);
    const channel = (n) => powers.reduceRight((value, power) => value * at + power[n], 0);
    return packed([0, 1, 2].map((n) => Math.round(255 * Math.min(1, Math.max(0, channel(n))))));
  });
}

// The range of colours of an image of these levels. A logarithmic one begins above 0.
function rangeOf({ low, high, largest, least_positive }, scale) {
  const top = high > low ? high : Math.max(largest, low + 1);
  if (scale === "linear") return [low, top];
  const end = top > 0 ? Math.max(top, 2 * least_positive) : 1;
  return [Math.min(Math.max(least_positive, end * 1e-4) || end * 1e-4, end / 2), end];
}

// A range that a scale can have: ascending, and above 0 if it is logarithmic.
function usable([low, high], scale) {
  if (scale === "linear") return high > low ? [low, high] : [low, low + 1];
  const top = high > 0 ? high : 1;
  return [low > 0 && low < top ? low : top * 1e-4, top];
}

// A function from values to 0 to 1.
function position([low, high], scale) {
  if (scale === "linear") return (value) => (value - low) / (high - low);
  const [from, length] = [Math.log(low), Math.log(high / low)];
  return (value) => (value > 0 ? (Math.log(value) - from) / length : 0);
}

// Its inverse.
function valueAt([low, high], scale, at) {
  return scale === "linear" ? low + at * (high - low) : low * (high / low) ** at;
}

// Paints values as pixels of a canvas.
function paint(values, pixels, range, scale, map) {
  const place = position(range, scale);
  const colours = colourMap(map);
  const [bad, saturated] = [packed(BAD[map]), packed(SATURATED)];
  const last = COLOURS - 1;
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i];
    if (value !== value) pixels[i] = bad;
    else if (value === Infinity) pixels[i] = saturated;
    else pixels[i] = colours[Math.min(last, Math.max(0, Math.round(last * place(value))))];
  }
}

// A value in few characters.
function digits(value) {
  if (Number.isInteger(value)) return `${value}`;
  return `${+value.toPrecision(Math.abs(value) < 1e-2 ? 2 : 3)}`;
}
