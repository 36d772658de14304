import { rmSync, writeFileSync } from "node:fs";
import type { Locator } from "@playwright/test";
import { ended, expect, test } from "./app";

test("from the first page to why a job failed, and to its being done, in at most four clicks", async ({
  page,
  server,
}) => {
  rmSync(server.mended, { force: true });
  const job = await server.submit("shopping", { item: "honey" });
  await ended(server, job, "FAILED");
  await page.goto(server.at("/"));
  let clicks = 0;
  const click = async (target: Locator): Promise<void> => {
    clicks += 1;
    await target.click();
  };

  await click(page.getByRole("link", { name: /(was|were) not run again/ }));
  await click(page.getByRole("button", { name: /the shop that sells honey is closed/ }));
  await click(page.getByRole("link", { name: job }));
  // The step that failed is open: what it said, and what made it say so.
  await expect(page.getByRole("heading", { level: 2, name: "open_shop" })).toBeVisible();
  const step = page.getByRole("complementary", { name: "Step open_shop" });
  await expect(step.getByText("the shop that sells honey is closed").first()).toBeVisible();
  await expect(step.getByText(/FileNotFoundError/).first()).toBeVisible();
  writeFileSync(server.mended, "open again");
  await click(page.getByRole("button", { name: "Retry from open_shop" }));

  await expect(page).not.toHaveURL(new RegExp(`jobs/${job}`));
  const next = page.url().match(/jobs\/([0-9a-f-]{36})/)?.[1] ?? "";
  await ended(server, next);
  expect(await server.ask("GET", `/jobs/${next}/output`)).toBe("honey sold, wrapped");
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
  expect(clicks).toBeLessThanOrEqual(4);
  rmSync(server.mended, { force: true });
});

test("all failures of one kind are run again at once, after a count and a reason", async ({ page, server }) => {
  rmSync(server.mended, { force: true });
  const jobs = await Promise.all([1, 2, 3].map(() => server.submit("shopping", { item: "figs" })));
  for (const job of jobs) await ended(server, job, "FAILED");
  writeFileSync(server.mended, "open again");
  await page.goto(server.at("/dead-letters"));
  const kind = page.getByRole("listitem").filter({ hasText: "the shop that sells figs is closed" });
  await kind.getByRole("button", { name: "Redrive" }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("3");
  await dialog.getByLabel("Reason").fill("the shop is open again");
  await dialog.getByRole("button", { name: "Run 3 jobs again" }).click();
  await expect(kind).toHaveCount(0, { timeout: 30_000 });
  for (const job of jobs)
    await expect
      .poll(async () => {
        const found = await server.ask<{ items: { retry_of: string | null }[] }>(
          "GET",
          "/jobs?recipe=shopping&limit=50",
        );
        return found.items.filter((one) => one.retry_of === job).length;
      })
      .toBe(1);
  rmSync(server.mended, { force: true });
});
