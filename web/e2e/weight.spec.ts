import { expect, test } from "./app";
import type { Server } from "./server";

const BUDGET = 200_000;
const ROWS = 110;

/** Everything that came over the wire until the page has been quiet for a while, headers and all. */
async function weigh(page: import("@playwright/test").Page, url: string): Promise<{ total: number; list: string[] }> {
  const wire = await page.context().newCDPSession(page);
  await wire.send("Network.enable");
  const urls = new Map<string, string>();
  const list: string[] = [];
  let total = 0;
  wire.on("Network.requestWillBeSent", (event) => urls.set(event.requestId, event.request.url));
  wire.on("Network.loadingFinished", (event) => {
    total += event.encodedDataLength;
    list.push(`${event.encodedDataLength} ${urls.get(event.requestId)?.replace(/^https?:\/\/[^/]+/, "")}`);
  });
  await page.goto(url);
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
  let seen = -1;
  await expect
    .poll(() => {
      const isQuiet = seen === total;
      seen = total;
      return isQuiet;
    }, { intervals: [1_500] }) // biome-ignore format: one thought
    .toBe(true);
  return { total, list };
}

async function fill(server: Server): Promise<string> {
  let job = "";
  for (let i = 0; i < ROWS; i++) job = await server.submit("errand");
  return job;
}

test("a first visit costs at most 200 kB, with fonts, data and headers", async ({ page, server }) => {
  test.setTimeout(120_000);
  const job = await fill(server);
  for (const path of ["/jobs", `/jobs/${job}`, "/", "/recipes", "/settings"]) {
    await test.step(path, async () => {
      const fresh = await page.context().newPage();
      const wire = await page.context().newCDPSession(fresh);
      await wire.send("Network.clearBrowserCache");
      const { total, list } = await weigh(fresh, server.at(path));
      expect.soft(total, `${path}\n${list.join("\n")}`).toBeLessThanOrEqual(BUDGET);
      expect.soft(total, "something was measured").toBeGreaterThan(60_000);
      await fresh.close();
    });
  }
});
