/** Jobs that wait for a person: found, counted alike everywhere, and answered with a look at what is sent. */
import type { Page } from "@playwright/test";
import { ended, expect, listen, signIn, test } from "./app";
import { expectGood } from "./axe";
import { settled } from "./pages";
import { RECIPES, Server } from "./server";

// Counts are of a whole installation: no other test uses this one.
test.describe.configure({ mode: "serial" });
test.setTimeout(120_000);

let server: Server;
let page: Page;
const complaints: string[] = [];

interface Listed {
  readonly items: readonly { readonly job_id: string; readonly activity: string | null }[];
}

async function listed(query: string): Promise<string[]> {
  return (await server.ask<Listed>("GET", `/jobs?caller=*&${query}`)).items.map((job) => job.job_id);
}

async function doing(activity: string, count: number): Promise<void> {
  await expect.poll(async () => (await listed(`activity=${activity}`)).length, { timeout: 30_000 }).toBe(count);
}

test.beforeAll(async ({ browser }) => {
  server = await Server.start({ app: RECIPES });
  page = await browser.newPage({ viewport: { width: 1440, height: 860 } });
  listen(page, complaints);
  await signIn(page, server);
});

test.afterAll(async () => {
  await page?.close();
  await server?.stop();
  expect(complaints, "what the page complained of").toEqual([]);
});

test("the guide's recipe is approved from the banner, with one look at the payload", async () => {
  const job = await server.submit("article", { topic: "tides" });
  await doing("waiting", 1);
  await page.goto(server.at(`/jobs/${job}`));
  await expect(page.locator("header").getByText("Waiting").first()).toBeVisible();
  await page.getByRole("button", { name: "Send “approved”…" }).click();
  const dialog = page.getByRole("dialog");
  const payload = dialog.getByLabel("Payload");
  await expect(payload).toHaveValue(JSON.stringify({ topic: "tides", by: "local" }, null, 2));
  await expect(dialog).toContainText("The recipe reads by");
  await expectGood(page, "the answer's form");

  // What used to be sent is warned about: the recipe would fail.
  await payload.fill("true");
  const wrong = dialog.getByRole("list", { name: "Errors" });
  await expect(wrong).toContainText("The recipe reads “by”");
  await expect(wrong).toContainText('only takes “topic” = "tides"');
  await expect(dialog.getByRole("button", { name: "Send “approved” anyway" })).toBeVisible();
  await expectGood(page, "the answer's form with warnings");

  await payload.fill(JSON.stringify({ topic: "tides", by: "grace" }));
  await expect(wrong).toHaveCount(0);
  await dialog.getByRole("button", { name: "Send “approved”" }).click();
  await ended(server, job);
  expect(await server.ask("GET", `/jobs/${job}/output`)).toBe("All about tides (approved by grace)");
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
});

test("the same form stands beside the step, and may say no", async () => {
  const job = await server.submit("article", { topic: "whales" });
  await doing("waiting", 1);
  await page.goto(server.at(`/jobs/${job}?step=1`));
  const inspector = page.getByRole("complementary", { name: "Step approved" });
  await expect(inspector.getByLabel("Payload")).toHaveValue(/"by": "local"/);
  await inspector.getByLabel("Payload").fill('{"topic": "whales", "by": ""}');
  await expect(inspector.getByRole("list", { name: "Errors" })).toContainText("still empty");
  await inspector.getByRole("button", { name: "Send “approved” anyway" }).click();
  // Without a name the guide's condition leaves the page unpublished.
  await ended(server, job);
  expect(await server.ask("GET", `/jobs/${job}/output`)).toEqual({ skipped: true });
});

test("chip, badge, overview and list agree on who waits, and no row says that it runs", async () => {
  for (const topic of ["a", "b", "c"]) await server.submit("article", { topic });
  await server.submit("errand");
  await server.submit("nap");
  const paused = await server.submit("errand");
  await doing("waiting", 5);
  await server.ask("POST", `/jobs/${paused}/pause`);
  await doing("waiting", 4);
  await doing("sleeping", 1);

  await page.goto(server.at("/"));
  await settled(page);
  const main = page.getByRole("main");
  await expect(main.getByRole("link", { name: /^Waiting\s*4$/ })).toBeVisible();
  await expect(main.getByRole("link", { name: /^Sleeping\s*1$/ })).toBeVisible();
  await expect(main.getByRole("link", { name: /^Paused\s*1$/ })).toBeVisible();
  await expect(page.getByRole("link", { name: /Jobs\s*4 wait for a person/ })).toBeVisible();

  const rows = page.locator("[data-job]");
  await main.getByRole("link", { name: /3 jobs wait for “approved”/ }).click();
  await expect(rows).toHaveCount(3);
  await page.goBack();
  await main.getByRole("link", { name: /^Waiting\s*4$/ }).click();
  await expect(rows).toHaveCount(4);
  const chip = page.getByRole("button", { name: /^Waiting\s*4$/ });
  await expect(chip).toHaveAttribute("aria-pressed", "true");
  for (const row of await rows.all()) await expect(row).toContainText(/Waiting.*waits for (approved|go)/s);
  await expectGood(page, "jobs that wait");

  await chip.click();
  await expect(page.locator("[data-job]", { hasText: "nap" })).toContainText(/Sleeping.*sleeps/s);
  await expect(page.locator("[data-job]", { hasText: "Paused" })).toHaveCount(1);
  await expect(page.locator("[data-job]", { hasText: "Running" })).toHaveCount(0);
});

test("a row follows what its job does, and leaves a list that it no longer belongs to", async () => {
  await page.goto(server.at("/jobs?activity=waiting&recipe=article"));
  const rows = page.locator("[data-job]");
  await expect(rows).toHaveCount(3);
  const job = await server.submit("article", { topic: "d" });
  await expect(page.locator(`[data-job="${job}"]`)).toContainText("Waiting", { timeout: 20_000 });
  await server.ask("POST", `/jobs/${job}/pause`);
  await expect(page.locator(`[data-job="${job}"][data-gone]`)).toBeAttached({ timeout: 20_000 });
});

test("a budget that holds a job is said on the job, in the list and on the overview", async () => {
  const job = await server.submit("dear", {}, { budget: "1" });
  await page.goto(server.at(`/jobs/${job}`));
  const strip = page.getByRole("region", { name: "What needs attention" });
  await expect(strip).toContainText("waits for money: the budget of job", { timeout: 20_000 });
  await page.goto(server.at("/jobs?recipe=dear"));
  await expect(page.locator("[data-job]")).toContainText(/Queued.*held by the job's budget/s);
  await page.goto(server.at("/"));
  await page.getByRole("link", { name: /The budget of a job is used up/ }).click();
  await expect(page).toHaveURL(new RegExp(job));
});

test("a fan-out that was abandoned is counted, and a job is known by the end of its id", async () => {
  const job = await server.submit("hopeless");
  await ended(server, job, "FAILED");
  await page.goto(server.at(`/jobs/${job}`));
  await expect(page.getByRole("list", { name: "Steps by state" })).toHaveText(/2\s*Cancelled\s*1\s*Failed/);
  await expect(
    page
      .locator("header")
      .getByText(`…${job.slice(-8)}`)
      .first(),
  ).toBeVisible();
});

test("a dialog that needs a reason says so", async () => {
  const [job] = await listed("activity=sleeping");
  await page.goto(server.at(`/jobs/${job}`));
  await page.getByRole("button", { name: "Cancel" }).first().click();
  const dialog = page.getByRole("dialog");
  await expect(dialog.getByText("Give a reason first")).toBeVisible();
  await dialog.getByLabel("Reason").fill("enough slept");
  await expect(dialog.getByText("Give a reason first")).toHaveCount(0);
  await dialog.getByRole("button", { name: "Cancel the job" }).click();
  await ended(server, job ?? "", "CANCELLED");
});

test("workers show the queues that a user named, and nothing is cut off at the width of a phone", async () => {
  await page.goto(server.at("/workers"));
  await expect(page.getByRole("list", { name: "Queues" }).first()).toHaveText("default queues");
  await page.setViewportSize({ width: 360, height: 740 });
  for (const path of ["/", "/jobs?activity=waiting", "/providers", "/workers", "/settings"]) {
    await page.goto(server.at(path));
    await settled(page);
    expect(await cutOff(page), path).toEqual([]);
  }
});

/** Texts that begin in the window and end outside it, where nothing scrolls to their end. */
function cutOff(of: Page): Promise<string[]> {
  return of.evaluate(() => {
    // The page's own frame scrolls down; that it could be pushed aside too is what must not be needed.
    const isPage = (element: Element): boolean => element.previousElementSibling?.querySelector("h1") != null;
    const doesScroll = (element: Element | null): boolean =>
      element !== null &&
      !isPage(element) &&
      (["auto", "scroll"].includes(getComputedStyle(element).overflowX) || doesScroll(element.parentElement));
    const found: string[] = [];
    const walker = document.createTreeWalker(document.querySelector("main") ?? document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const box = node.parentElement?.getBoundingClientRect();
      const text = node.textContent?.trim() ?? "";
      if (text === "" || box === undefined || box.width === 0 || box.right <= innerWidth) continue;
      if (!doesScroll(node.parentElement)) found.push(`${text.slice(0, 40)} ends at ${Math.round(box.right)}`);
    }
    return found;
  });
}
