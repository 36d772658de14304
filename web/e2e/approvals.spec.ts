/** The inbox of approvals: what exactly will run, one key each to approve and reject, on a desk and on a phone. */
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
  readonly items: readonly { readonly id: string; readonly job_id: string }[];
}

/** A job of another caller: nobody decides on a request of their own. */
async function requested(topic: string): Promise<string> {
  const { key } = await server.ask<{ key: string }>("POST", "/keys", { caller: "grace", name: topic });
  const answer = await fetch(`${server.url}/jobs`, {
    method: "POST",
    headers: { "X-API-Key": key, "Content-Type": "application/json" },
    body: JSON.stringify({ recipe: "reviewed", inputs: { topic } }),
  });
  const job = ((await answer.json()) as { job_id: string }).job_id;
  const waits = async (): Promise<boolean> =>
    (await server.ask<Listed>("GET", "/approvals?state=PENDING")).items.some((one) => one.job_id === job);
  await expect.poll(waits, { timeout: 30_000 }).toBe(true);
  return job;
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

test("an empty inbox says how a request gets there", async () => {
  await page.goto(server.at("/approvals"));
  await expect(page.getByRole("heading", { name: "Nothing waits for you" })).toBeVisible();
  await expect(page.getByText('wl.approve("Publish?"')).toBeVisible();
  await expectGood(page, "an empty inbox");
});

test("a request appears by itself, with what will run, and one key approves it", async () => {
  const job = await requested("tides");
  const detail = page.getByRole("article", { name: "Publish the page?" });
  await expect(detail).toBeVisible({ timeout: 20_000 });
  await expect(detail.getByLabel("What the recipe shows", { exact: true })).toContainText("All about tides");
  await expect(detail.getByLabel("Inputs of the job", { exact: true })).toContainText("tides");
  await expect(detail).toContainText("grace");
  await expect(detail.getByText(/1d 23h left/)).toBeVisible();
  await expect(page.getByRole("link", { name: /Approvals.*1 approvals to decide/ })).toBeVisible({ timeout: 20_000 });
  await expectGood(page, "an approval");

  await page.keyboard.press("a");
  const dialog = page.getByRole("dialog", { name: "Approve" });
  await dialog.getByLabel("Reason").fill("reads well");
  await expectGood(page, "the vote's dialog");
  await page.keyboard.press("Enter");
  await expect(dialog).toHaveCount(0);
  await ended(server, job);
  expect(await server.ask("GET", `/jobs/${job}/output`)).toMatch(/^All about tides \(approved by /);
  await expect(page.getByRole("heading", { name: "Nothing waits for you" })).toBeVisible();
});

test("a rejection needs a reason, and the requester reads it", async () => {
  const job = await requested("whales");
  await expect(page.getByRole("article", { name: "Publish the page?" })).toBeVisible({ timeout: 20_000 });
  await page.keyboard.press("r");
  const dialog = page.getByRole("dialog", { name: "Reject" });
  await expect(dialog.getByText("Give a reason first")).toBeVisible();
  await dialog.getByLabel("Reason").fill("too long");
  await dialog.getByRole("button", { name: "Reject", exact: true }).click();
  await ended(server, job, "FAILED");
  await page.goto(server.at("/approvals?view=all"));
  await page.locator("[data-approval]", { hasText: "Rejected" }).click();
  await expect(page.getByRole("article")).toContainText("too long");
});

test("a phone shows the list, then the request, and nothing is cut off", async () => {
  const job = await requested("reefs");
  await page.setViewportSize({ width: 360, height: 740 });
  await page.goto(server.at("/approvals"));
  await settled(page);
  await expectGood(page, "the inbox on a phone");
  await page.locator("[data-approval]").first().click();
  await expect(page.getByRole("article")).toBeVisible();
  await expect(page.getByRole("list", { name: "Approvals" })).toHaveCount(0);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
  await expectGood(page, "a request on a phone");
  await page.getByRole("button", { name: "Approve" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Approve", exact: true }).click();
  await ended(server, job);
  await expect(page).toHaveURL(/\/approvals$/);
});
