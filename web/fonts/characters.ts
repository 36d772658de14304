/** Which glyphs a text needs. */

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
