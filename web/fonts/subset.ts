/**
 * A font with only some of its characters, made when the console is built: what one reads on a first visit is a fifth of
 * what the font can write. Glyphs that are not wanted become empty and keep their numbers, so no other table changes; a
 * page must ask for the font with `unicode-range`: the full font has the rest.
 */
import { charactersOf } from "./characters.ts";
import { close, open, type Table } from "./container.ts";
import { featureOf, gsubOf } from "./features.ts";
import { keepGlyphs, keepVariations } from "./glyphs.ts";

export interface Wish {
  readonly text: string;
  /** Features of GSUB that still work; the others are left out, as the glyphs they lead to may be gone. */
  readonly features: readonly string[];
}

export function subset(font: Buffer, wish: Wish): Buffer {
  const { header, tables } = open(font);
  const table = (tag: string): Table | undefined => tables.find((one) => one.tag === tag);
  const kept = new Set([0, ...charactersOf(body(table("cmap")), wish.text)]);
  const gsub = table("GSUB");
  if (gsub !== undefined) {
    const features = wish.features.map((tag) => featureOf(gsub.body, tag, kept));
    for (const { swaps } of features) for (const glyph of swaps.values()) kept.add(glyph);
    gsub.body = gsubOf(features);
  }
  const glyf = table("glyf");
  if (glyf === undefined || !glyf.isTransformed) throw new Error("a font whose outlines are not as WOFF2 packs them");
  glyf.body = keepGlyphs(glyf.body, kept);
  const post = table("post");
  if (post !== undefined) post.body = nameless(post.body);
  const gvar = table("gvar");
  if (gvar !== undefined) gvar.body = keepVariations(gvar.body, kept);
  const isIdle = wish.features.length === 0;
  return close({ header, tables: isIdle ? tables.filter((one) => one !== gsub) : tables });
}

/** Without the names of glyphs, which only makers of fonts read. */
function nameless(post: Buffer): Buffer {
  const short = Buffer.from(post.subarray(0, 32));
  short.writeUInt32BE(0x00030000, 0);
  return short;
}

function body(table: Table | undefined): Buffer {
  if (table === undefined) throw new Error("a font without a table that every font has");
  return table.body;
}
