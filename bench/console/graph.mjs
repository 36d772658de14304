/**
 * Measures the console's graph and @xyflow/react on the same jobs, in one browser, one after the other: the time until the
 * graph shows, the frames per second while it is panned for four seconds and changes stream in, and the memory.
 *
 *   (cd web && npm ci) && (cd bench/console && npm ci) && node bench/console/graph.mjs [--quick]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = fileURLToPath(new URL(".", import.meta.url));
const need = createRequire(join(HERE, "../../web/package.json"));
const { build, preview } = await import(need.resolve("vite"));
const { default: react } = await import(need.resolve("@vitejs/plugin-react"));
const { default: tailwind } = await import(need.resolve("@tailwindcss/vite"));
const { chromium } = need("@playwright/test");

const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
];
// The console's build subsets its fonts; here the full fonts are enough.
const FONTS = Object.fromEntries(
  ["inter", "jetbrains-mono"].map((name) => [
    `@fonts/${name}.woff2`,
    need.resolve(`@fontsource-variable/${name}/files/${name}-latin-wght-normal.woff2`),
  ]),
);
const ROUNDS = process.argv.includes("--quick") ? 1 : 3;
const WAIT_MS = 120_000;
// Steps, changes per second, turns of the wheel, and whether xyflow is measured too: above 1,000 steps it takes minutes.
const CASES = [
  [300, 100, 0, true],
  [1_000, 200, 0, true],
  [1_000, 200, 3, true],
  [10_000, 2_000, 0, false],
  [10_000, 2_000, 5, false],
];

const out = mkdtempSync(join(tmpdir(), "windlass-bench-"));
try {
  await build({
    root: HERE,
    configFile: false,
    logLevel: "warn",
    plugins: [react(), tailwind()],
    worker: { format: "es" },
    resolve: { dedupe: ["react", "react-dom"], alias: FONTS },
    build: {
      outDir: out,
      emptyOutDir: true,
      rolldownOptions: { input: ["ours.html", "xyflow.html"].map((name) => join(HERE, name)) },
    },
  });
  const server = await preview({
    root: HERE,
    configFile: false,
    build: { outDir: out },
    preview: { host: "127.0.0.1", port: 0 },
  });
  try {
    await measure(server.resolvedUrls.local[0]);
  } finally {
    await server.close();
  }
} finally {
  rmSync(out, { recursive: true, force: true });
}

async function measure(address) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
  const rows = [];
  try {
    for (const [steps, rate, zoom, withPeer] of CASES) {
      const ours = await best(() => look(browser, `${address}ours.html?job=layered&steps=${steps}&rate=${rate}`, zoom));
      const theirs = withPeer
        ? await best(() =>
            look(browser, `${address}xyflow.html?steps=${steps}&rate=${rate}${zoom > 0 ? "&cull" : ""}`, zoom),
          )
        : null;
      rows.push({ steps, rate, zoom, ours, theirs });
      console.log(line(rows.at(-1)));
    }
  } finally {
    await browser.close();
  }
  console.log(JSON.stringify(rows));
}

function line({ steps, rate, zoom, ours, theirs }) {
  const told = (one) => `ready ${one.ready} ms, ${one.fps} fps, p95 ${one.p95} ms, ${one.heap} MB`;
  const ratio = theirs === null ? "" : ` | xyflow ${told(theirs)} | ${(ours.fps / theirs.fps).toFixed(1)} x its frames`;
  return `${steps} steps, ${rate} changes/s, ${zoom > 0 ? "reading zoom" : "all in view"}: ${told(ours)}${ratio}`;
}

/** Returns the round with the most frames: foreign load can only lower the count. */
async function best(round) {
  let found = null;
  for (let i = 0; i < ROUNDS; i++) {
    const one = await round();
    if (found === null || one.fps > found.fps) found = one;
  }
  return found;
}

async function look(browser, address, zoom) {
  const page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
  try {
    const began = Date.now();
    await page.goto(address);
    await page.waitForFunction(isThere, null, { polling: 50, timeout: WAIT_MS });
    const ready = Date.now() - began;
    return { ready, ...(await page.evaluate(panForAWhile, zoom)) };
  } finally {
    await page.close();
  }
}

/** Runs in the page: tells whether the canvas shows more than its background, or the nodes are in their places. */
function isThere() {
  const flow = document.querySelector(".react-flow__node");
  if (flow !== null) return flow.getBoundingClientRect().width > 0;
  const canvas = document.querySelector("canvas");
  if (!canvas?.width) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 28) if (Math.abs(data[i] - data[0]) > 20) return true;
  return false;
}

/** Runs in the page: zooms in, then drags the graph about and counts frames. */
async function panForAWhile(zoom) {
  const box =
    document.querySelector("[role=application]:not(.react-flow)") ?? document.querySelector(".react-flow__pane");
  const isFlow = box.classList.contains("react-flow__pane");
  const at = { clientX: 500, clientY: 430, bubbles: true, cancelable: true, view: window };
  for (let i = 0; i < zoom; i++) box.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -400 }));
  await new Promise((resolve) => setTimeout(resolve, 800));
  // xyflow pans with d3, which listens to mouse events; the console listens to pointer events.
  const send = (kind, x, y) => {
    const init = { ...at, pointerId: 1, clientX: x, clientY: y, button: 0, buttons: 1 };
    const target = kind === "down" ? box : window;
    if (isFlow) target.dispatchEvent(new MouseEvent(`mouse${kind}`, init));
    else target.dispatchEvent(new PointerEvent(`pointer${kind}`, init));
  };
  const place = () => (isFlow ? document.querySelector(".react-flow__viewport").style.transform : null);
  const before = place();
  const times = [];
  send("down", 700, 430);
  await new Promise((resolve) => {
    const frame = (time) => {
      times.push(time);
      const angle = (time - times[0]) / 300;
      send("move", 700 + 120 * Math.sin(angle), 430 + 60 * Math.cos(angle));
      if (time - times[0] < 4_000) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  });
  if (isFlow && place() === before) throw new Error("the graph of xyflow was not moved");
  send("up", 700, 430);
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  gaps.sort((a, b) => a - b);
  globalThis.gc?.();
  return {
    fps: Math.round((10_000 * gaps.length) / (times.at(-1) - times[0])) / 10,
    p95: Math.round(gaps[Math.floor(gaps.length * 0.95)]),
    heap: Math.round(performance.memory.usedJSHeapSize / 1e6),
  };
}
