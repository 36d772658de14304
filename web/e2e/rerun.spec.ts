import { ended, expect, test } from "./app";

test("a job runs again from a step with other inputs, after it was told what that does", async ({ page, server }) => {
  const job = await server.submit("coat");
  await ended(server, job);
  await page.goto(server.at(`/jobs/${job}`));
  await page.locator("[data-step]", { hasText: "cut" }).click();
  await page.getByRole("button", { name: "Run again from here…" }).click();
  const dialog = page.getByRole("dialog");
  const plan = dialog.getByRole("region", { name: "What will happen" });
  await expect(plan).toContainText(/Will run again\s*2/);
  await dialog.getByLabel("Inputs").fill("{ not json");
  await expect(dialog.getByRole("button", { name: "Run again" })).toHaveAttribute("aria-disabled", "true");
  await dialog.getByLabel("Inputs").fill(JSON.stringify({ cloth: "silk", colour: "red" }));
  // The cloth was measured before, and is not measured again: that must be said.
  await expect(plan).toContainText("Kept, though made from other inputs");
  await expect(plan).toContainText("measure");
  await dialog.getByRole("button", { name: "Run 2 steps again" }).click();

  await expect(page).not.toHaveURL(new RegExp(job));
  const next = page.url().match(/jobs\/([0-9a-f-]{36})/)?.[1] ?? "";
  await ended(server, next);
  expect(await server.ask("GET", `/jobs/${next}/output`)).toBe("a coat of red wool, 3 m");
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
  expect(await server.ask("GET", `/jobs/${job}/output`)).toBe("a coat of blue wool, 3 m");
});
