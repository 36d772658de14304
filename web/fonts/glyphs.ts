/** Outlines, and how they vary, of some glyphs only: the others are there and empty. */
import { Reader } from "./reader.ts";

const HEAD = 36;
const STREAMS = ["contours", "points", "flags", "shapes", "composites", "boxes", "instructions"] as const;
type Streams = Record<(typeof STREAMS)[number], Reader>;

// What a part of a composite glyph says of itself.
const HAS_WORDS = 0x1;
const HAS_SCALE = 0x8;
const HAS_MORE = 0x20;
const HAS_TWO_SCALES = 0x40;
const HAS_MATRIX = 0x80;
const HAS_INSTRUCTIONS = 0x100;

export interface Slice {
  readonly contours: Buffer;
  readonly points: Buffer;
  readonly flags: Buffer;
  readonly shapes: Buffer;
  readonly composites: Buffer;
  readonly box: Buffer | undefined;
  readonly instructions: Buffer;
  readonly parts: readonly number[];
}

/** WOFF2 keeps all contours together, all points together, and so on: each glyph has a slice of every stream. */
export function keepGlyphs(glyf: Buffer, kept: Set<number>): Buffer {
  const count = glyf.readUInt16BE(4);
  const slices = slicesOf(glyf, count);
  for (const glyph of kept) for (const part of slices[glyph]?.parts ?? []) kept.add(part); // A set that grows is walked on.
  const isKept = (_: unknown, glyph: number): boolean => kept.has(glyph);
  const of = (name: Exclude<keyof Slice, "box" | "parts">): Buffer =>
    Buffer.concat(slices.filter(isKept).map((slice) => slice[name]));
  const contours = Buffer.concat(slices.map((slice, glyph) => (kept.has(glyph) ? slice.contours : Buffer.alloc(2))));
  const bitmap = Buffer.alloc(4 * Math.ceil(count / 32));
  const boxes = slices.map((slice, glyph) => (kept.has(glyph) ? slice.box : undefined));
  boxes.forEach((box, glyph) => {
    if (box !== undefined) bitmap[glyph >> 3] = (bitmap[glyph >> 3] ?? 0) | (0x80 >> (glyph & 7));
  });
  const box = Buffer.concat([bitmap, ...boxes.filter((one) => one !== undefined)]);
  const streams = [contours, of("points"), of("flags"), of("shapes"), of("composites"), box, of("instructions")];
  const head = Buffer.from(glyf.subarray(0, HEAD));
  for (const [i, stream] of streams.entries()) head.writeUInt32BE(stream.length, 8 + i * 4);
  return Buffer.concat([head, ...streams, overlaps(glyf, count)]);
}

/** Behind the streams there may be a bit for each glyph: whether its contours overlap. */
function overlaps(glyf: Buffer, count: number): Buffer {
  if ((glyf.readUInt16BE(2) & 1) === 0) return Buffer.alloc(0);
  return glyf.subarray(glyf.length - ((count + 7) >> 3));
}

export function slicesOf(glyf: Buffer, count: number): Slice[] {
  let at = HEAD;
  const streams = Object.fromEntries(
    STREAMS.map((name, i) => {
      const reader = new Reader(glyf.subarray(at, at + glyf.readUInt32BE(8 + i * 4)));
      at += reader.bytes.length;
      return [name, reader];
    }),
  ) as Streams;
  const bitmap = streams.boxes.take(4 * Math.ceil(count / 32));
  return Array.from({ length: count }, (_, glyph) => {
    const hasBox = ((bitmap[glyph >> 3] ?? 0) & (0x80 >> (glyph & 7))) !== 0;
    return sliceOf(streams, hasBox);
  });
}

function sliceOf(streams: Streams, hasBox: boolean): Slice {
  const from = Object.fromEntries(STREAMS.map((name) => [name, streams[name].at])) as Record<keyof Streams, number>;
  const number = streams.contours.take(2).readInt16BE();
  let parts: readonly number[] = [];
  if (number > 0) {
    let points = 0;
    for (let i = 0; i < number; i++) points += streams.points.short255();
    for (let i = 0; i < points; i++) streams.shapes.take(tripletLength(streams.flags.byte() & 127));
    streams.instructions.take(streams.shapes.short255());
  } else if (number < 0) {
    const composite = partsOf(streams.composites);
    parts = composite.parts;
    if (composite.hasInstructions) streams.instructions.take(streams.shapes.short255());
  }
  const box = hasBox ? streams.boxes.take(8) : undefined;
  const cut = (name: keyof Streams): Buffer => streams[name].bytes.subarray(from[name], streams[name].at);
  return {
    contours: cut("contours"),
    points: cut("points"),
    flags: cut("flags"),
    shapes: cut("shapes"),
    composites: cut("composites"),
    box,
    instructions: cut("instructions"),
    parts,
  };
}

/** How many bytes a point takes besides its flag. */
function tripletLength(flag: number): number {
  return flag < 84 ? 1 : flag < 120 ? 2 : flag < 124 ? 3 : 4;
}

function partsOf(stream: Reader): { parts: number[]; hasInstructions: boolean } {
  const parts: number[] = [];
  let hasInstructions = false;
  for (let flags = HAS_MORE; (flags & HAS_MORE) !== 0; ) {
    flags = stream.uint16();
    parts.push(stream.uint16());
    const scale = flags & HAS_SCALE ? 2 : flags & HAS_TWO_SCALES ? 4 : flags & HAS_MATRIX ? 8 : 0;
    stream.take((flags & HAS_WORDS ? 4 : 2) + scale);
    hasInstructions ||= (flags & HAS_INSTRUCTIONS) !== 0;
  }
  return { parts, hasInstructions };
}

/** How the outlines change with the weight: a piece for each glyph, found by a list of where it begins. */
export function keepVariations(gvar: Buffer, kept: ReadonlySet<number>): Buffer {
  const count = gvar.readUInt16BE(12);
  const isLong = (gvar.readUInt16BE(14) & 1) === 1;
  const start = gvar.readUInt32BE(16);
  const offset = (glyph: number): number =>
    isLong ? gvar.readUInt32BE(20 + glyph * 4) : gvar.readUInt16BE(20 + glyph * 2) * 2;
  const first = Buffer.from(gvar.subarray(0, start));
  const pieces: Buffer[] = [];
  let at = 0;
  for (let glyph = 0; glyph <= count; glyph++) {
    if (isLong) first.writeUInt32BE(at, 20 + glyph * 4);
    else first.writeUInt16BE(at / 2, 20 + glyph * 2);
    if (glyph === count || !kept.has(glyph)) continue;
    const piece = gvar.subarray(start + offset(glyph), start + offset(glyph + 1));
    pieces.push(piece);
    at += piece.length;
  }
  return Buffer.concat([first, ...pieces]);
}
