import { expect, test } from "./app";

test("the documentation is searched and read without any other server", async ({ page, server }) => {
  const asked: string[] = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`${server.url}/docs/`);
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(/Windlass documentation/);

  await page.keyboard.press("Control+k");
  await page.keyboard.type("idempotency");
  const found = page.locator("a[href*='.html']", { hasText: /idempotency/i }).first();
  await found.click();
  await expect(page.locator("article")).toContainText(/idempotency/i);

  // A page with a state diagram: the theme would fetch a library to draw it.
  await page.goto(`${server.url}/docs/concepts/states.html`);
  await expect(page.getByRole("heading", { level: 1 })).toContainText("States");
  await expect(page.getByRole("cell", { name: "PENDING", exact: true }).first()).toBeVisible();
  expect(asked.filter((address) => !address.startsWith(server.url) && !address.startsWith("data:"))).toEqual([]);
});

for (const colorScheme of ["light", "dark"] as const)
  test(`no page of the documentation is wider than a phone, ${colorScheme}`, async ({ page, server }) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width: 360, height: 740 });
    for (const name of ["index", "project/about", "benchmarks", "reference/settings", "guides/streaming"]) {
      await page.goto(`${server.url}/docs/${name}.html`);
      expect(await page.evaluate(() => document.documentElement.scrollWidth), name).toBeLessThanOrEqual(360);
    }
  });
