import { ended, expect, test } from "./app";

test("everything on the way to a step's error is reached by keys alone", async ({ page, server }) => {
  const job = await server.submit("shopping", { item: `salt ${Date.now()}` });
  await expect.poll(() => server.status(job), { timeout: 30_000 }).toMatch(/FAILED|COMPLETED/);
  await page.goto(server.at("/"));
  await expect(page.getByRole("heading", { level: 1 })).toBeVisible();

  await page.keyboard.press("Tab");
  await expect(page.getByRole("link", { name: "Skip to content" })).toBeFocused();
  await page.keyboard.press("g");
  await page.keyboard.press("j");
  await expect(page).toHaveURL(/\/jobs$/);
  await expect(page.locator(`[data-job="${job}"]`)).toBeVisible();
  await page.keyboard.press("/");
  await expect(page.getByRole("combobox", { name: "Filter jobs" })).toBeFocused();
  await page.keyboard.type("recipe:shopping ");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Escape");
  await page.keyboard.press("Escape");
  await expect(page).toHaveURL(/recipe=shopping/);
  const row = page.locator(`[data-job="${job}"]`);
  await expect(row).toBeVisible();
  await page.keyboard.press("j");
  await expect(row.getByRole("link").first()).toBeFocused();
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(new RegExp(`/jobs/${job}`));
  await expect(page.getByRole("tab", { name: "Steps" })).toBeVisible();
  await page.keyboard.press("3");
  await expect(page.getByRole("tab", { name: "Steps" })).toHaveAttribute("aria-selected", "true");
  await page.keyboard.press("Control+k");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.type("recipes");
  await page.keyboard.press("Enter");
  await expect(page).toHaveURL(/\/recipes/);
  await page.keyboard.press("?");
  await expect(page.getByRole("dialog")).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("dialog")).toBeHidden();
});

test("the graph is walked along its edges with the arrows", async ({ page, server }) => {
  const job = await server.submit("coat");
  await ended(server, job);
  await page.goto(server.at(`/jobs/${job}`));
  await page.locator("[data-step]", { hasText: "measure" }).focus();
  const focused = (): Promise<string> => page.evaluate(() => document.activeElement?.textContent ?? "");
  // The layout chooses its direction by what fits: one of these two leads on.
  await page.keyboard.press("ArrowDown");
  if (!(await focused()).includes("cut")) await page.keyboard.press("ArrowRight");
  expect(await focused()).toContain("cut");
  await page.keyboard.press("Enter");
  await expect(page.getByRole("heading", { level: 2, name: "cut" })).toBeVisible();
  await page.keyboard.press("Escape");
  await expect(page.getByRole("heading", { level: 2, name: "cut" })).toBeHidden();
});
