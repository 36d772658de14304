/** Which glyphs a text needs: by the character map, and by the features that swap them. */

/** The glyphs of a text, by the character map. */
export function charactersOf(cmap: Buffer, text: string): number[] {
  const offsets = Array.from({ length: cmap.readUInt16BE(2) }, (_, i) => cmap.readUInt32BE(8 + i * 8));
  const map = offsets.map((offset) => cmap.subarray(offset)).find((one) => one.readUInt16BE(0) === 4);
  if (map === undefined) throw new Error("a font without a plain character map");
  const segments = map.readUInt16BE(6) / 2;
  const at = (column: number, i: number): number => 14 + column * segments * 2 + (column > 0 ? 2 : 0) + i * 2;
  return [...new Set(text)].flatMap((character) => {
    const code = character.codePointAt(0) ?? 0;
    for (let i = 0; i < segments; i++) {
      if (map.readUInt16BE(at(0, i)) < code) continue;
      const start = map.readUInt16BE(at(1, i));
      if (start > code) return [];
      const delta = map.readUInt16BE(at(2, i));
      const range = map.readUInt16BE(at(3, i));
      const glyph = range === 0 ? code : map.readUInt16BE(at(3, i) + range + (code - start) * 2);
      return glyph === 0 ? [] : [(glyph + delta) & 0xffff];
    }
    return [];
  });
}

/** Turn off the features that are not wanted, and keep the glyphs that the others put in the place of kept ones. */
export function keepFeatures(gsub: Buffer, wanted: readonly string[], kept: Set<number>): void {
  const features = gsub.readUInt16BE(6);
  const lookups = gsub.readUInt16BE(8);
  for (let i = 0; i < gsub.readUInt16BE(features); i++) {
    const record = features + 2 + i * 6;
    const feature = features + gsub.readUInt16BE(record + 4);
    if (!wanted.includes(gsub.toString("latin1", record, record + 4))) gsub.writeUInt16BE(0, feature + 2);
    for (let k = 0; k < gsub.readUInt16BE(feature + 2); k++) {
      const lookup = lookups + gsub.readUInt16BE(lookups + 2 + gsub.readUInt16BE(feature + 4 + k * 2) * 2);
      for (const glyph of substitutes(gsub, lookup, kept)) kept.add(glyph);
    }
  }
}

function substitutes(gsub: Buffer, lookup: number, kept: ReadonlySet<number>): number[] {
  const tables = Array.from(
    { length: gsub.readUInt16BE(lookup + 4) },
    (_, i) => lookup + gsub.readUInt16BE(lookup + 6 + i * 2),
  );
  return tables.flatMap((table) => {
    const isFar = gsub.readUInt16BE(lookup) === 7;
    const type = isFar ? gsub.readUInt16BE(table + 2) : gsub.readUInt16BE(lookup);
    if (type !== 1) throw new Error("only features that swap one glyph for another can be kept");
    const single = isFar ? table + gsub.readUInt32BE(table + 4) : table;
    const covered = coverage(gsub, single + gsub.readUInt16BE(single + 2));
    const isDelta = gsub.readUInt16BE(single) === 1;
    const swap = (glyph: number, i: number): number =>
      isDelta ? (glyph + gsub.readInt16BE(single + 4)) & 0xffff : gsub.readUInt16BE(single + 6 + i * 2);
    return covered.flatMap((glyph, i) => (kept.has(glyph) ? [swap(glyph, i)] : []));
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
