import { writeFileSync } from "node:fs";
import { ended, expect, test } from "./app";

test("from a failed job to knowing why, and to its being done, in at most four clicks", async ({ page, server }) => {
  const job = await server.submit("shopping", { item: "honey" });
  await ended(server, job, "FAILED");
  await page.goto(server.at("/"));
  let clicks = 0;
  const click = async (target: ReturnType<typeof page.locator>): Promise<void> => {
    clicks += 1;
    await target.click();
  };

  // What needs attention comes first.
  await click(
    page
      .getByRole("main")
      .getByRole("link", { name: /fail|dead/i })
      .first(),
  );
  await click(
    page
      .getByRole("main")
      .getByRole("link", { name: new RegExp(job.slice(0, 8)) })
      .or(page.locator(`[data-job="${job}"] a`))
      .first(),
  );
  // The step that failed is open: what it said, and what made it say so.
  await expect(page.getByRole("heading", { level: 2, name: "open_shop" })).toBeVisible();
  await expect(page.getByText("the shop that sells honey is closed").first()).toBeVisible();
  await expect(page.getByText("FileNotFoundError").first()).toBeVisible();
  writeFileSync(server.mended, "open again");
  await click(page.getByRole("button", { name: /^Retry from/ }));
  await expect(page).not.toHaveURL(new RegExp(`jobs/${job}`));
  const next = page.url().match(/jobs\/([0-9a-f-]{36})/)?.[1] ?? "";
  await ended(server, next);
  expect(await server.ask("GET", `/jobs/${next}/output`)).toBe("honey sold, wrapped");
  expect(clicks).toBeLessThanOrEqual(4);
});
