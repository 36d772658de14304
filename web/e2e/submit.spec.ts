import { ended, expect, test } from "./app";

test("a job is submitted by the form that its recipe makes, and followed to its end", async ({ page, server }) => {
  await page.goto(server.at("/recipes"));
  await page.getByRole("link", { name: "greeting", exact: true }).click();
  const form = page.getByRole("form", { name: "Submit a job" });
  await form.getByRole("button", { name: "Submit" }).click();
  // What is missing is said where it is missing, and has the focus.
  await expect(form.getByRole("textbox", { name: /^name/ })).toBeFocused();
  await form.getByRole("textbox", { name: /^name/ }).fill("Ada");
  await form.getByLabel(/^times/).fill("3");
  await form.getByRole("button", { name: "Submit" }).click();

  await expect(page).toHaveURL(/\/console\/jobs\/[0-9a-f-]{36}/);
  const job = page.url().match(/jobs\/([0-9a-f-]{36})/)?.[1] ?? "";
  await ended(server, job);
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
  expect(await server.ask("GET", `/jobs/${job}/input`)).toEqual({
    name: "Ada",
    times: 3,
    tone: "warm",
    is_public: false,
  });
  await page.getByRole("tab", { name: "Input / Output" }).click();
  await expect(page.getByText("warm: hello, Ada").first()).toBeVisible();
});

test("the graph of a running job reaches its end without the page being asked again", async ({ page, server }) => {
  const job = await server.submit("mosaic", { pace: 0.8 });
  await page.goto(server.at(`/jobs/${job}`));
  // Its children may be drawn in it; it stands before them.
  const fan = page.locator("[data-step]", { hasText: "paint" }).first();
  await expect(fan).toContainText("×8");
  await expect(fan).toContainText("running");
  await expect(page.locator("[data-step]", { hasText: "frame" })).toContainText("pending");
  await expect(fan).toContainText("completed", { timeout: 30_000 });
  await expect(page.locator("[data-step]", { hasText: "frame" })).toContainText("completed");
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
  await expect(page.getByRole("list", { name: "Steps by state" })).toHaveText(/10\s*Completed/);
  // One document, one socket: nothing was loaded twice.
  expect(await page.evaluate(() => performance.getEntriesByType("navigation").length)).toBe(1);
});
