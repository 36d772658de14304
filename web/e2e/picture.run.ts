/** The picture of the README: `make screenshot` takes it from the running demo and writes it to docs/images. */
import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, listen, test } from "./app";
import { Server } from "./server";

const FILE = join(import.meta.dirname, "../../docs/images/console.png");
const BYTES_MAX = 300_000;

const LOOK = {
  viewport: { width: 1200, height: 680 },
  deviceScaleFactor: 1.5,
  colorScheme: "light",
  reducedMotion: "reduce",
} as const;

test("the picture of the README", async ({ browser }) => {
  test.setTimeout(150_000);
  const server = await Server.start();
  try {
    const page = await browser.newPage(LOOK);
    const complaints: string[] = [];
    listen(page, complaints);
    const step = (name: string) => page.locator("[data-step]", { hasText: name }).first();
    await page.goto(server.link);
    // A moment that shows most states: a fan-out at work, a branch that was skipped, and steps that wait.
    await expect(step("choose_photos")).toContainText("completed", { timeout: 30_000 });
    await expect(step("add_umbrellas")).toContainText("skipped", { timeout: 60_000 });
    await expect(step("develop")).toContainText("running");
    await page.screenshot({ path: FILE, animations: "disabled" });
    expect(complaints).toEqual([]);
  } finally {
    await server.stop();
  }
  expect(statSync(FILE).size).toBeLessThanOrEqual(BYTES_MAX);
});
