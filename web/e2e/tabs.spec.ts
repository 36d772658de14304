import { ended, expect, test } from "./app";

const TABS = 12;

test("twelve tabs are live at once, over one connection", async ({ page, server }) => {
  test.setTimeout(120_000);
  const job = await server.submit("errand", { place: "every tab" });
  const context = page.context();
  const pages = [page, ...(await Promise.all(Array.from({ length: TABS - 1 }, () => context.newPage())))];
  let streams = 0;
  context.on("request", (request) => {
    if (request.url().includes("/console/stream")) streams += 1;
  });
  // Six connections are all that a browser gives to a server: a stream of its own for each tab would stop the seventh.
  await Promise.all(pages.map((one) => one.goto(server.at(`/jobs/${job}`))));
  for (const one of pages)
    await expect(one.getByRole("status").getByText("live", { exact: true })).toBeVisible({ timeout: 30_000 });
  await server.ask("POST", `/jobs/${job}/events`, { name: "go", body: {} });
  await ended(server, job);
  for (const one of pages) {
    await one.bringToFront();
    await expect(one.locator("header").getByText("Completed").first()).toBeVisible();
  }
  expect(streams).toBeLessThanOrEqual(1);
  await Promise.all(pages.slice(1).map((one) => one.close()));
});
