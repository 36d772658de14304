/** Features that put one glyph in the place of another: figures of equal width, for one. All others are left out. */

export interface Feature {
  readonly tag: string;
  /** From glyph to glyph, in order. */
  readonly swaps: ReadonlyMap<number, number>;
}

/** What a feature does to these glyphs. */
export function featureOf(gsub: Buffer, tag: string, glyphs: ReadonlySet<number>): Feature {
  const features = gsub.readUInt16BE(6);
  const lookups = gsub.readUInt16BE(8);
  const swaps = new Map<number, number>();
  for (let i = 0; i < gsub.readUInt16BE(features); i++) {
    const record = features + 2 + i * 6;
    if (gsub.toString("latin1", record, record + 4) !== tag) continue;
    const feature = features + gsub.readUInt16BE(record + 4);
    for (let k = 0; k < gsub.readUInt16BE(feature + 2); k++) {
      const lookup = lookups + gsub.readUInt16BE(lookups + 2 + gsub.readUInt16BE(feature + 4 + k * 2) * 2);
      for (const [from, to] of swapsOf(gsub, lookup)) if (glyphs.has(from)) swaps.set(from, to);
    }
  }
  return { tag, swaps: new Map([...swaps].sort(([a], [b]) => a - b)) };
}

/** A table of these features alone, for any script. */
export function gsubOf(features: readonly Feature[]): Buffer {
  const sorted = features.toSorted((a, b) => (a.tag < b.tag ? -1 : 1));
  const count = sorted.length;
  const indices = sorted.map((_, i) => i);
  const scripts = Buffer.concat([uint16(1), tagged("DFLT"), uint16(8, 4, 0, 0, 0xffff, count, ...indices)]);
  const records = sorted.map(({ tag }, i) => Buffer.concat([tagged(tag), uint16(2 + count * 6 + i * 6)]));
  const list = Buffer.concat([uint16(count), ...records, ...indices.map((i) => uint16(0, 1, i))]);
  const lookups = sorted.map(({ swaps }) => lookupOf(swaps));
  let at = 2 + count * 2;
  const offsets = lookups.map((lookup) => {
    at += lookup.length;
    return at - lookup.length;
  });
  const head = uint16(1, 0, 10, 10 + scripts.length, 10 + scripts.length + list.length);
  return Buffer.concat([head, scripts, list, uint16(count, ...offsets), ...lookups]);
}

function lookupOf(swaps: ReadonlyMap<number, number>): Buffer {
  const [from, to] = [[...swaps.keys()], [...swaps.values()]];
  return uint16(1, 0, 1, 8, 2, 6 + to.length * 2, to.length, ...to, 1, from.length, ...from);
}

function swapsOf(gsub: Buffer, lookup: number): [number, number][] {
  const tables = Array.from(
    { length: gsub.readUInt16BE(lookup + 4) },
    (_, i) => lookup + gsub.readUInt16BE(lookup + 6 + i * 2),
  );
  return tables.flatMap((table) => {
    const isFar = gsub.readUInt16BE(lookup) === 7;
    const type = isFar ? gsub.readUInt16BE(table + 2) : gsub.readUInt16BE(lookup);
    if (type !== 1) throw new Error("only features that put one glyph in the place of another can be kept");
    const single = isFar ? table + gsub.readUInt32BE(table + 4) : table;
    const isDelta = gsub.readUInt16BE(single) === 1;
    return coverage(gsub, single + gsub.readUInt16BE(single + 2)).map((from, i): [number, number] => [
      from,
      isDelta ? (from + gsub.readInt16BE(single + 4)) & 0xffff : gsub.readUInt16BE(single + 6 + i * 2),
    ]);
  });
}

function coverage(table: Buffer, at: number): number[] {
  const count = table.readUInt16BE(at + 2);
  if (table.readUInt16BE(at) === 1) return Array.from({ length: count }, (_, i) => table.readUInt16BE(at + 4 + i * 2));
  return Array.from({ length: count }, (_, i) => at + 4 + i * 6).flatMap((range) => {
    const [from, to] = [table.readUInt16BE(range), table.readUInt16BE(range + 2)];
    return Array.from({ length: to - from + 1 }, (_, i) => from + i);
  });
}

function uint16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2);
  for (const [i, value] of values.entries()) bytes.writeUInt16BE(value, i * 2);
  return bytes;
}

function tagged(tag: string): Buffer {
  return Buffer.from(tag, "latin1");
}
