import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { expect, test } from "vitest";
import { charactersOf } from "./characters.ts";
import { close, open } from "./container.ts";
import { slicesOf } from "./glyphs.ts";
import { base128, Reader } from "./reader.ts";
import { subset } from "./subset.ts";

const require = createRequire(import.meta.url);
const INTER = readFileSync(require.resolve("@fontsource-variable/inter/files/inter-latin-wght-normal.woff2"));

function table(font: Buffer, tag: string): Buffer {
  const found = open(font).tables.find((one) => one.tag === tag);
  if (found === undefined) throw new Error(`no ${tag}`);
  return found.body;
}

function outlines(font: Buffer): readonly string[] {
  const glyf = table(font, "glyf");
  return slicesOf(glyf, glyf.readUInt16BE(4)).map((slice) => slice.shapes.toString("hex"));
}

test("a font that is opened and closed holds the same", () => {
  const again = open(close(open(INTER)));
  expect(again.tables.map((one) => one.tag)).toEqual(open(INTER).tables.map((one) => one.tag));
  for (const one of again.tables) expect(one.body.equals(table(INTER, one.tag)), one.tag).toBe(true);
});

test("wanted glyphs are as they were, and the others empty", () => {
  const small = subset(INTER, { text: "Wind", features: [] });
  const kept = new Set([0, ...charactersOf(table(INTER, "cmap"), "Wind")]);
  expect(kept.size).toBe(5);
  const before = outlines(INTER);
  const after = outlines(small);
  expect(after).toHaveLength(before.length);
  for (const [glyph, shape] of after.entries()) {
    if (kept.has(glyph)) expect(shape, `glyph ${glyph}`).toBe(before[glyph]);
  }
  expect(after.filter((shape) => shape !== "").length).toBeLessThanOrEqual(kept.size + 2);
  expect(small.length).toBeLessThan(INTER.length / 2);
});

test("a letter that is put together brings its parts", () => {
  const [glyph = 0] = charactersOf(table(INTER, "cmap"), "é");
  const parts = slicesOf(table(INTER, "glyf"), table(INTER, "glyf").readUInt16BE(4))[glyph]?.parts ?? [];
  expect(parts.length).toBeGreaterThan(1);
  const after = outlines(subset(INTER, { text: "é", features: [] }));
  for (const part of parts) expect(after[part], `part ${part}`).not.toBe("");
});

test("figures of equal width are kept with the feature that puts them there", () => {
  const count = (features: readonly string[]): number => {
    const glyf = table(subset(INTER, { text: "0123456789", features }), "glyf");
    return slicesOf(glyf, glyf.readUInt16BE(4)).filter((slice) => slice.contours.readInt16BE() !== 0).length;
  };
  expect(count(["tnum"])).toBeGreaterThan(count([]));
});

test("a character that the font does not have is none", () => {
  expect(charactersOf(table(INTER, "cmap"), "漢")).toEqual([]);
});

test("what is no font, or half of one, is refused", () => {
  expect(() => subset(Buffer.from("<html>"), { text: "a", features: [] })).toThrow();
  expect(() => subset(INTER.subarray(0, 2_000), { text: "a", features: [] })).toThrow();
});

test.each([0, 1, 127, 128, 16_384, 2 ** 31 - 1])("%d is written and read the same", (value) => {
  expect(new Reader(base128(value)).base128()).toBe(value);
});
