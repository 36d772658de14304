/** How far apart two colours are, and for whom: what the test of the state colours measures with. */

export type Rgb = readonly [number, number, number];
export type Sight = "normal" | "deutan" | "protan" | "tritan";
type Matrix = readonly [Rgb, Rgb, Rgb];

export function parseHex(hex: string): Rgb {
  const found = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(hex);
  if (found === null) throw new Error(`not a colour of six digits: ${hex}`);
  return [channel(found[1]), channel(found[2]), channel(found[3])];
}

/** A colour laid over another, as the browser does it. */
export function over(top: Rgb, alpha: number, below: Rgb): Rgb {
  return zip(top, below, (a, b) => a * alpha + b * (1 - alpha));
}

/** The contrast of WCAG 2: 1 (none) to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [light, dark] = [luminance(a), luminance(b)].sort((x, y) => y - x) as [number, number];
  return (light + 0.05) / (dark + 0.05);
}

// Machado, Oliveira, Fernandes 2009, at full strength, for missing L and M cones. For missing S cones their model is
// known to be poor; there it is Brettel, Viénot, Mollon 1997: two half planes.
const PROTAN: Matrix = [
  [0.152286, 1.052583, -0.204868],
  [0.114503, 0.786281, 0.099216],
  [-0.003882, -0.048116, 1.051998],
];
const DEUTAN: Matrix = [
  [0.367322, 0.860646, -0.227968],
  [0.280085, 0.672501, 0.047413],
  [-0.01182, 0.04294, 0.968881],
];
const TRITAN_A: Matrix = [
  [1.01277, 0.13548, -0.14826],
  [-0.01243, 0.86812, 0.14431],
  [0.07589, 0.805, 0.11911],
];
const TRITAN_B: Matrix = [
  [0.93678, 0.18979, -0.12657],
  [0.06154, 0.81526, 0.1232],
  [-0.37562, 1.12767, 0.24796],
];
const TRITAN_PLANE: Rgb = [0.03901, -0.02788, -0.01113];

/** A colour as it is seen with this kind of sight. */
export function seen(colour: Rgb, sight: Sight): Rgb {
  if (sight === "normal") return colour;
  const linear = map(colour, toLinear);
  const tritan = dot(linear, TRITAN_PLANE) >= 0 ? TRITAN_A : TRITAN_B;
  const matrix = sight === "protan" ? PROTAN : sight === "deutan" ? DEUTAN : tritan;
  return map(times(matrix, linear), (value) => fromLinear(Math.min(1, Math.max(0, value))));
}

/** CIE ΔE 2000 of two sRGB colours. */
export function difference(a: Rgb, b: Rgb): number {
  return deltaE2000(labOf(a), labOf(b));
}

export function deltaE2000([l1, a1, b1]: Rgb, [l2, a2, b2]: Rgb): number {
  const chroma = (Math.hypot(a1, b1) + Math.hypot(a2, b2)) / 2;
  const g = 0.5 * (1 - Math.sqrt(chroma ** 7 / (chroma ** 7 + 25 ** 7)));
  const [ap1, ap2] = [a1 * (1 + g), a2 * (1 + g)];
  const [c1, c2] = [Math.hypot(ap1, b1), Math.hypot(ap2, b2)];
  const [h1, h2] = [hue(ap1, b1), hue(ap2, b2)];
  const isGrey = c1 * c2 === 0;
  const turn = isGrey ? 0 : ((h2 - h1 + 540) % 360) - 180;
  const dH = 2 * Math.sqrt(c1 * c2) * sin(turn / 2);
  const [l, c] = [(l1 + l2) / 2, (c1 + c2) / 2];
  // The mean of two hues lies on the shorter way between them; a grey has none.
  const far = Math.abs(h1 - h2) > 180;
  const h = isGrey ? h1 + h2 : far ? (h1 + h2 + (h1 + h2 < 360 ? 360 : -360)) / 2 : (h1 + h2) / 2;
  const t = 1 - 0.17 * cos(h - 30) + 0.24 * cos(2 * h) + 0.32 * cos(3 * h + 6) - 0.2 * cos(4 * h - 63);
  const sl = 1 + (0.015 * (l - 50) ** 2) / Math.sqrt(20 + (l - 50) ** 2);
  const [sc, sh] = [1 + 0.045 * c, 1 + 0.015 * c * t];
  const rc = 2 * Math.sqrt(c ** 7 / (c ** 7 + 25 ** 7));
  const rt = -rc * sin(60 * Math.exp(-(((h - 275) / 25) ** 2)));
  const [x, y, z] = [(l2 - l1) / sl, (c2 - c1) / sc, dH / sh];
  return Math.sqrt(x * x + y * y + z * z + rt * y * z);
}

function labOf(colour: Rgb): Rgb {
  const [r, g, b] = map(colour, toLinear);
  const x = (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047;
  const y = 0.2126729 * r + 0.7151522 * g + 0.072175 * b;
  const z = (0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883;
  const f = (t: number): number => (t > 216 / 24389 ? Math.cbrt(t) : (t * 24389) / 27 / 116 + 16 / 116);
  return [116 * f(y) - 16, 500 * (f(x) - f(y)), 200 * (f(y) - f(z))];
}

function luminance(colour: Rgb): number {
  return dot(map(colour, toLinear), [0.2126, 0.7152, 0.0722]);
}

function toLinear(value: number): number {
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

function fromLinear(value: number): number {
  return value <= 0.0031308 ? value * 12.92 : 1.055 * value ** (1 / 2.4) - 0.055;
}

const RADIANS = Math.PI / 180;
const sin = (degrees: number): number => Math.sin(degrees * RADIANS);
const cos = (degrees: number): number => Math.cos(degrees * RADIANS);
const hue = (a: number, b: number): number => (Math.atan2(b, a) / RADIANS + 360) % 360;
const channel = (digits = "0"): number => Number.parseInt(digits, 16) / 255;
const dot = (a: Rgb, b: Rgb): number => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const map = (a: Rgb, change: (value: number) => number): Rgb => [change(a[0]), change(a[1]), change(a[2])];
const times = (m: Matrix, a: Rgb): Rgb => [dot(m[0], a), dot(m[1], a), dot(m[2], a)];
const zip = (a: Rgb, b: Rgb, mix: (x: number, y: number) => number): Rgb => [
  mix(a[0], b[0]),
  mix(a[1], b[1]),
  mix(a[2], b[2]),
];
