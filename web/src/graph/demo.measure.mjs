/**
 * Frames per second of the graph while it is panned for four seconds and changes stream in.
 *
 *   npx vite --port 5199 &
 *   node src/graph/demo.measure.mjs http://127.0.0.1:5199/console/src/graph/demo.html
 */
import { chromium } from "@playwright/test";

const CASES = [
  ["40 steps, 20 changes/s", "steps=40&rate=20", 0],
  ["1,000 steps, 200/s, all in view", "steps=1000&job=layered&rate=200", 0],
  ["1,000 steps, 200/s, reading zoom", "steps=1000&job=layered&rate=200", 3],
  ["10,000 steps, 570/s, all in view", "steps=10000&job=layered&rate=570", 0],
  ["10,000 steps, 2,000/s, all in view", "steps=10000&job=layered&rate=2000", 0],
  ["10,000 steps, 2,000/s, names", "steps=10000&job=layered&rate=2000", 3],
  ["10,000 steps, 2,000/s, reading zoom", "steps=10000&job=layered&rate=2000", 5],
  ["fan-out of 9,983, folded", "steps=10000&rate=2000", 0],
];
const FLAGS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"],
  ...["--disable-component-update", "--disable-sync", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
];

const [address] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
const page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
for (const [name, query, zoom] of CASES) {
  const began = Date.now();
  await page.goto(`${address}?${query}`);
  await page.waitForFunction(isPainted, null, { polling: 50, timeout: 60_000 });
  const ready = Date.now() - began;
  const { fps, p95, heap } = await page.evaluate(panForAWhile, zoom);
  console.log(`${name}: ready ${ready} ms, ${fps} fps, 95 % of frames within ${p95} ms, heap ${heap} MB`);
}
await browser.close();

/** In the page: whether the canvas shows anything but its background. */
function isPainted() {
  const canvas = document.querySelector("canvas");
  if (!canvas?.width) return false;
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  for (let i = 0; i < data.length; i += 28) if (Math.abs(data[i] - data[0]) > 20) return true;
  return false;
}

/** In the page: zoom in, then drag the graph about and count frames. */
async function panForAWhile(zoom) {
  const box = document.querySelector("[role=application]");
  const at = { clientX: 500, clientY: 430, bubbles: true, cancelable: true };
  for (let i = 0; i < zoom; i++) box.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: -400 }));
  await new Promise((resolve) => setTimeout(resolve, 800));
  const send = (type, x, y) => {
    const init = { pointerId: 1, clientX: x, clientY: y, button: 0, bubbles: true };
    (type === "pointerdown" ? box : window).dispatchEvent(new PointerEvent(type, init));
  };
  const times = [];
  send("pointerdown", 700, 430);
  await new Promise((resolve) => {
    const frame = (time) => {
      times.push(time);
      const angle = (time - times[0]) / 300;
      send("pointermove", 700 + 120 * Math.sin(angle), 430 + 60 * Math.cos(angle));
      if (time - times[0] < 4_000) requestAnimationFrame(frame);
      else resolve();
    };
    requestAnimationFrame(frame);
  });
  send("pointerup", 700, 430);
  const gaps = times.slice(1).map((time, i) => time - times[i]);
  gaps.sort((a, b) => a - b);
  globalThis.gc?.();
  return {
    fps: Math.round((10_000 * gaps.length) / (times.at(-1) - times[0])) / 10,
    p95: Math.round(gaps[Math.floor(gaps.length * 0.95)]),
    heap: Math.round(performance.memory.usedJSHeapSize / 1e6),
  };
}
