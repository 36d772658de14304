/** A WOFF2 file as its tables, and back. See the WOFF2 specification of the W3C. */
import { brotliCompressSync, brotliDecompressSync, constants } from "node:zlib";
import { base128, Reader } from "./reader.ts";

export interface Table {
  readonly tag: string;
  readonly flags: number;
  readonly originalLength: number;
  readonly isTransformed: boolean;
  body: Buffer;
}

export interface Font {
  readonly header: Buffer;
  readonly tables: readonly Table[];
}

const GLYF = 10;
const LOCA = 11;
const TAGS =
  "cmap head hhea hmtx maxp name OS/2 post cvt  fpgm glyf loca prep CFF  VORG EBDT EBLC gasp hdmx kern LTSH PCLT VDMX vhea vmtx BASE GDEF GPOS GSUB EBSC JSTF MATH CBDT CBLC COLR CPAL SVG  sbix acnt avar bdat bloc bsln cvar fdsc feat fmtx fvar gvar hsty just lcar mort morx opbd prop trak Zapf Silf Glat Gloc Feat Sill";
const tagOf = (index: number): string => TAGS.slice(index * 5, index * 5 + 4);

export function open(font: Buffer): Font {
  if (font.toString("latin1", 0, 4) !== "wOF2") throw new Error("not a WOFF2 font");
  const reader = new Reader(font, 48);
  const heads = Array.from({ length: font.readUInt16BE(12) }, () => {
    const flags = reader.byte();
    const index = flags & 63;
    const tag = index === 63 ? reader.take(4).toString("latin1") : tagOf(index);
    const isTransformed = index === GLYF || index === LOCA ? flags >> 6 !== 3 : flags >> 6 !== 0;
    const originalLength = reader.base128();
    return { tag, flags, originalLength, isTransformed, length: isTransformed ? reader.base128() : originalLength };
  });
  const data = new Reader(brotliDecompressSync(reader.take(font.readUInt32BE(20))));
  const tables = heads.map(({ length, ...head }) => ({ ...head, body: Buffer.from(data.take(length)) }));
  return { header: Buffer.from(font.subarray(0, 48)), tables };
}

export function close({ header, tables }: Font): Buffer {
  const heads = tables.map((table) => {
    const tag = (table.flags & 63) === 63 ? Buffer.from(table.tag, "latin1") : Buffer.alloc(0);
    const lengths = table.isTransformed ? [table.originalLength, table.body.length] : [table.body.length];
    return Buffer.concat([Buffer.of(table.flags), tag, ...lengths.map(base128)]);
  });
  const data = Buffer.concat(tables.map((table) => table.body));
  const packed = brotliCompressSync(data, {
    params: {
      [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_FONT,
      [constants.BROTLI_PARAM_SIZE_HINT]: data.length,
    },
  });
  const font = Buffer.concat([header, ...heads, packed]);
  const padded = Buffer.concat([font, Buffer.alloc((4 - (font.length % 4)) % 4)]);
  padded.writeUInt32BE(padded.length, 8);
  padded.writeUInt16BE(tables.length, 12);
  padded.writeUInt32BE(packed.length, 20);
  padded.fill(0, 28, 48); // No metadata: it was behind what was cut out.
  return padded;
}
