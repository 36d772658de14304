import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Plugin } from "vite";
import { subset } from "./subset.ts";

/** What the console writes by itself, and most of what people write: their other letters come from the full font. */
const SIGNS = "\u00a0·×–—‘’“”•…€↑↓−";
const TEXT = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join("") + SIGNS;

const FONTS = [
  { name: "inter", features: ["tnum"] },
  { name: "jetbrains-mono", features: [] },
];

/** The fonts of a first visit, found as `@fonts/<name>.woff2` in style sheets. */
export function fonts(): Plugin {
  return {
    name: "fonts",
    config: () => ({ resolve: { alias: { "@fonts": make() } } }),
  };
}

function make(): string {
  const require = createRequire(import.meta.url);
  const folder = join(import.meta.dirname, "../node_modules/.cache/windlass-fonts");
  mkdirSync(folder, { recursive: true });
  for (const { name, features } of FONTS) {
    const file = require.resolve(`@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`);
    const font = subset(readFileSync(file), { text: TEXT, features });
    const path = join(folder, `${name}.woff2`);
    if (digest(font) !== digest(read(path))) writeFileSync(path, font);
  }
  return folder;
}

/** A file that is as it should be stays: a second build at the same time may be reading it. */
function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch {
    return Buffer.alloc(0);
  }
}

function digest(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}
