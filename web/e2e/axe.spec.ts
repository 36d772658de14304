import { expect, test } from "./app";
import { expectGood } from "./axe";
import { furnish, type Made, settled, shownPages } from "./pages";
import { RECIPES, Server } from "./server";

// They look and change nothing, so they may run side by side.
test.describe.configure({ mode: "parallel" });
test.setTimeout(120_000);

const NAMES = shownPages({ done: "", failed: "", waiting: "" }).map((page) => page.name);
const HALF = Math.ceil(NAMES.length / 2);
const made = new WeakMap<Server, Promise<Made>>();

function furnished(server: Server): Promise<Made> {
  const known = made.get(server) ?? furnish(server);
  made.set(server, known);
  return known;
}

for (const [part, names] of [NAMES.slice(0, HALF), NAMES.slice(HALF)].entries()) {
  for (const width of [1440, 320]) {
    test(`nothing is wrong with the pages, part ${part + 1}, ${width} px wide`, async ({ page, server }) => {
      await page.setViewportSize({ width, height: 860 });
      for (const shown of shownPages(await furnished(server)).filter((one) => names.includes(one.name))) {
        await test.step(shown.name, async () => {
          await page.goto(server.at(shown.path));
          await shown.ready(page);
          await expectGood(page, `${shown.name} at ${width}`);
          // Nothing is pushed out of a narrow window.
          expect
            .soft(await page.evaluate(() => document.documentElement.scrollWidth), shown.name)
            .toBeLessThanOrEqual(width);
        });
      }
    });
  }
}

test("nothing is wrong with what lies over a page", async ({ page, server }) => {
  const { done, waiting, failed } = await furnished(server);
  const dialog = page.getByRole("dialog");
  const look = async (name: string, path: string, open: () => Promise<void>): Promise<void> =>
    test.step(name, async () => {
      await page.goto(server.at(path));
      await settled(page);
      await open();
      await expect(dialog.or(page.getByRole("menu"))).toBeVisible();
      await expectGood(page, name);
    });
  const press = async (name: string | RegExp): Promise<void> => page.getByRole("button", { name }).first().click();
  await look("palette", "/", () => page.keyboard.press("Control+k"));
  await look("keys", "/", () => page.keyboard.press("?"));
  await look("actions", `/jobs/${done}`, () => press("Actions"));
  await look("run again", `/jobs/${done}`, () => press("Run again…"));
  await look("cancel", `/jobs/${waiting}`, () => press("Cancel"));
  await look("new key", "/settings", () => press(/(New|Make a|Create).*key/i));
  await look("account", "/", () => press(/Signed in as/));
  await look("redrive", "/dead-letters", () => press(/Redrive/));
  expect(failed).not.toBe("");
});

test("empty pages and the sign-in page have no violations", async ({ browser }) => {
  const server = await Server.start({ app: RECIPES });
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
    await page.goto(server.at("/"));
    await expect(page.getByRole("heading", { name: "Sign in to Windlass" })).toBeVisible();
    await expectGood(page, "sign-in");
    await page.getByLabel("API key").fill(server.key);
    await page.getByRole("button", { name: "Sign in" }).click();
    await expect(page.getByRole("navigation", { name: "Main" })).toBeVisible();
    for (const path of ["/", "/jobs", "/jobs?status=failed", "/dead-letters", "/providers", "/audit"]) {
      await page.goto(server.at(path));
      await expect(page.getByRole("heading", { level: 1 })).toBeVisible();
      await settled(page);
      await expectGood(page, `empty ${path}`);
    }
    await page.close();
  } finally {
    await server.stop();
  }
});
