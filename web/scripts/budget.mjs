// What a first visit to a page costs over the wire, as the server sends it: brotli for text, fonts as they are. Fails
// when a page is dearer than the budget. It builds in memory, so that it measures what is here and leaves nothing.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants } from "node:zlib";
import { build } from "vite";

const BUDGET = 200_000;
/** What the API answers on a first load: the session, the figures of the overview, and what is shown. As measured. */
const DATA = { jobs: 13_000 };
const DATA_USUAL = 6_000;
/** What an answer costs besides its body. Measured in the browser too. */
const HEADERS = 650;
/** Besides the page's own files: fonts, the icon, the page itself, and what it asks the API. */
const ANSWERS = 9;
/** What a page fetches by itself as soon as it is there, though it is cut off from it. */
const ALSO = { overview: /assets\/Chart-/, job: /layout\.worker/, recipe: /layout\.worker/ };
/** The fonts of a first visit; the whole ones are fetched for letters that few texts have. */
const FONTS = /assets\/(inter|jetbrains-mono)-[\w-]{8}\.woff2$/;
const root = new URL("..", import.meta.url).pathname;

const weigh = (body) => brotliCompressSync(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } }).length;
const kB = (bytes) => `${(bytes / 1_000).toFixed(1).padStart(6)}`;

const built = await build({ root, logLevel: "error", build: { write: false, reportCompressedSize: false } });
const files = new Map(built.output.map((file) => [file.fileName, file]));
const entry = built.output.find((file) => file.isEntry && file.fileName.startsWith("assets/"));

/** A chunk and all that it cannot start without. */
function needed(chunk, found = new Set()) {
  if (chunk === undefined || found.has(chunk.fileName)) return found;
  found.add(chunk.fileName);
  for (const name of chunk.imports) needed(files.get(name), found);
  for (const name of chunk.viteMetadata?.importedCss ?? []) found.add(name);
  return found;
}

const publicly = readdirSync(join(root, "public")).map((name) => weigh(readFileSync(join(root, "public", name))));
const html = weigh(files.get("index.html").source);
const fonts = built.output
  .filter((file) => FONTS.test(file.fileName))
  .reduce((sum, file) => sum + file.source.length, 0);
// The one connection of all tabs is a worker of its own, and it is fetched at once.
const workers = built.output
  .filter((file) => /hub\.worker/.test(file.fileName))
  .map((file) => weigh(file.code ?? file.source));
const frame = html + [...publicly, ...workers].reduce((sum, size) => sum + size, 0);

const pages = built.output.filter((file) => /\/src\/pages\/[\w-]+(\/index)?\.tsx$/.test(file.facadeModuleId ?? ""));
const rows = pages.map((page) => {
  const names = needed(page, needed(entry));
  const sizes = [...names].map((name) => [name, weigh(files.get(name).code ?? files.get(name).source)]);
  const sum = (isWanted) => sizes.filter(([name]) => isWanted(name)).reduce((all, [, size]) => all + size, 0);
  const also = built.output.filter((file) => ALSO[page.name]?.test(file.fileName));
  const late = also.reduce((all, file) => all + weigh(file.code ?? file.source), 0);
  const headers = (names.size + also.length + ANSWERS) * HEADERS;
  const script = sum((name) => name.endsWith(".js")) + frame + late + headers;
  const style = sum((name) => name.endsWith(".css"));
  const data = DATA[page.name] ?? DATA_USUAL;
  return { name: page.name, script, style, data, total: script + style + fonts + data };
});

console.log("kB over the wire  script  style  fonts   data   total");
for (const row of rows.sort((a, b) => b.total - a.total)) {
  const parts = [row.script, row.style, fonts, row.data].map(kB).join(" ");
  console.log(`${row.name.padEnd(16)} ${parts}  ${kB(row.total)}${row.total > BUDGET ? "  over the budget" : ""}`);
}
if (rows.length === 0 || fonts === 0 || rows.some((row) => row.total > BUDGET)) {
  console.error(`A first load may cost ${BUDGET / 1_000} kB.`);
  process.exit(1);
}
