import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin, type ProxyOptions } from "vite";
import { fonts } from "./fonts/plugin.ts";

const OUT = process.env.WINDLASS_CONSOLE_OUT ?? "../build/console";
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } };

/**
 * The parts that every page needs are in two files: thirty small files would cost a third more in headers alone. The
 * rest is split by page. A first visit shows no dialog and no palette, so these stay apart with what only they need.
 */
const GROUPS = [
  { name: "react", test: /node_modules\/(react|react-dom|scheduler)\// },
  {
    name: "kit",
    test: /src\/(ui\/(?!DialogFrame)|use|api|live|state|waitText|places)|node_modules\/(@tanstack\/[\w-]*query|wouter|lucide)/,
    minShareCount: 2,
  },
];

/** Leave every text file in the three forms that the server sends: it never compresses anything itself. */
function precompress(): Plugin {
  const visit = (folder: string): void => {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) visit(path);
      else if (/\.(js|css|html|svg|json)$/.test(name)) {
        const body = readFileSync(path);
        writeFileSync(`${path}.br`, brotliCompressSync(body, BROTLI));
        writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
      }
    }
  };
  return { name: "precompress", apply: "build", writeBundle: () => visit(OUT) };
}

/** While the console is being written: its own files from here, everything else from a server that runs. */
function proxy(target: string): Record<string, ProxyOptions> {
  const isOurs = (url: string): boolean =>
    /^\/console\/(?!session|stream|demo)/.test(url) || /^\/(@|src|node_modules)/.test(url);
  return { "/": { target, bypass: ({ url = "/" }) => (isOurs(url) ? url : undefined) } };
}

export default defineConfig({
  base: "/console/",
  plugins: [fonts(), react(), tailwind(), precompress()],
  build: {
    target: "es2022",
    outDir: OUT,
    emptyOutDir: true,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // A font within a style sheet would be refused by the page's policy.
    assetsInlineLimit: 0,
    rolldownOptions: { output: { codeSplitting: { groups: GROUPS } } },
  },
  server: { proxy: proxy(process.env.WINDLASS_API ?? "http://127.0.0.1:8000") },
  worker: { format: "es" },
});
