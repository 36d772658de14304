import { expect, test } from "./app";

const LABEL = "batch";

test("a filter is in the address, and what it finds is cancelled at once, after a count and a reason", async ({
  page,
  server,
}) => {
  const mine = await Promise.all(
    Array.from({ length: 12 }, (_, n) => server.submit("errand", { place: `p${n}` }, { labels: { [LABEL]: "yes" } })),
  );
  const others = await Promise.all([server.submit("errand"), server.submit("errand")]);

  await page.goto(server.at("/jobs"));
  const filter = page.getByRole("combobox", { name: "Filter jobs" });
  await filter.fill(`label:${LABEL}=yes`);
  await filter.press("Enter");
  await expect(page).toHaveURL(/label=batch/);
  const rows = page.getByRole("table", { name: "Jobs" }).getByRole("row");
  await expect(rows).toHaveCount(mine.length + 1);
  // The address alone is enough to see the same.
  await page.reload();
  await expect(rows).toHaveCount(mine.length + 1);

  await page.getByRole("button", { name: "All that match" }).click();
  await page.getByRole("menuitem", { name: /Cancel/ }).click();
  const dialog = page.getByRole("dialog");
  await expect(dialog).toContainText("Cancel 12 jobs");
  const go = dialog.getByRole("button", { name: "Cancel 12 jobs" });
  await go.click({ force: true });
  expect(await server.status(mine[0] as string)).not.toBe("CANCELLED");
  await dialog.getByLabel("Reason").fill("the wrong town");
  await go.click();
  await expect(dialog).toContainText("Cancelled 12 jobs", { timeout: 30_000 });
  await dialog.getByRole("button", { name: "Close" }).first().click();

  for (const job of mine) expect(await server.status(job)).toBe("CANCELLED");
  for (const job of others) expect(await server.status(job)).not.toBe("CANCELLED");
  const audit = await server.ask<{ items: { payload: { reason?: string } }[] }>("GET", "/audit?event=bulk_applied");
  expect(audit.items.map((one) => one.payload.reason)).toContain("the wrong town");
  await Promise.all(others.map((job) => server.ask("POST", `/jobs/${job}/cancel`, {})));
});
