import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
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

/** The font of nearly all text, as the bundler names it. */
const FIRST = /^assets\/inter-[\w-]{8}\.woff2$/;

/** The fonts of a first visit, found as `@fonts/<name>.woff2` in style sheets. */
export function fonts(): Plugin {
  return {
    name: "fonts",
    config: () => ({ resolve: { alias: { "@fonts": make() } } }),
    // Known before the style sheet is read: the first words are shown in the right letters.
    transformIndexHtml: (_, { bundle }) =>
      Object.keys(bundle ?? {})
        .filter((file) => FIRST.test(file))
        .map((file) => ({
          tag: "link",
          attrs: { rel: "preload", as: "font", type: "font/woff2", crossorigin: "", href: `/console/${file}` },
          injectTo: "head",
        })),
  };
}

/** The folder with the fonts. It is named by what is in it: another build at the same time, of other code, has its own. */
function make(): string {
  const require = createRequire(import.meta.url);
  const made = FONTS.map(({ name, features }) => {
    const file = require.resolve(`@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`);
    return { name, font: subset(readFileSync(file), { text: TEXT, features }) };
  });
  const digest = createHash("sha256");
  for (const { font } of made) digest.update(font);
  const folder = join(import.meta.dirname, "../node_modules/.cache/windlass-fonts", digest.digest("hex").slice(0, 16));
  mkdirSync(folder, { recursive: true });
  for (const { name, font } of made) {
    const path = join(folder, `${name}.woff2`);
    if (!existsSync(path)) writeWhole(path, font);
  }
  return folder;
}

/** Written whole or not at all: another build may read the file at any time. */
function writeWhole(path: string, bytes: Buffer): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, bytes);
  renameSync(draft, path);
}
