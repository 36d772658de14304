import type { Page } from "@playwright/test";
import { expect, listen, signIn, test } from "./app";
import { RECIPES, Server } from "./server";

interface Line {
  readonly seq: number;
  readonly type: string;
}

declare global {
  interface Window {
    /** Every event of a job that reached the page, in the order in which it did. */
    heard: Line[];
  }
}

/** Listen in on what the shared connection tells this tab. */
async function overhear(page: Page): Promise<void> {
  await page.addInitScript(() => {
    window.heard = [];
    const Native = window.SharedWorker;
    window.SharedWorker = class extends Native {
      constructor(url: string | URL, options?: string | WorkerOptions) {
        super(url, options);
        this.port.addEventListener("message", ({ data }) => {
          if (data?.kind === "job") window.heard.push(...data.patch.events);
        });
      }
    };
  });
}

async function events(server: Server, job: string): Promise<Line[]> {
  const all: Line[] = [];
  for (let after = 0; ; ) {
    const { items } = await server.ask<{ items: Line[] }>("GET", `/jobs/${job}/events?after=${after}&limit=200`);
    if (items.length === 0) return all;
    all.push(...items);
    after = items.at(-1)?.seq ?? after;
  }
}

test("over a server that is killed and started again, every event comes once", async ({ browser }) => {
  test.setTimeout(150_000);
  // The steps run in a worker of their own, so that events happen while the server is away.
  const server = await Server.start({ app: RECIPES, words: ["--queue", "nobodys"] });
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    listen(page, complaints);
    await signIn(page, server);
    await overhear(page);
    await server.worker();
    const open = async (): Promise<number> =>
      (await server.look<{ items: { steps_open: number }[] }>("jobs")).items[0]?.steps_open ?? 0;
    const job = await server.submit("ticking", { count: 90, pace: 0.3 });
    await page.goto(server.at(`/jobs/${job}?tab=events`));
    await expect.poll(() => page.evaluate(() => window.heard.length), { timeout: 30_000 }).toBeGreaterThan(20);

    const before = await open();
    await server.kill();
    await expect.poll(open, { timeout: 30_000 }).toBeLessThan(before - 8);
    await expect(page.getByText(/offline|reconnecting/i).first()).toBeVisible();
    await server.restart();
    await expect(page.getByRole("status").getByText("live", { exact: true })).toBeVisible({ timeout: 30_000 });
    await expect.poll(() => server.status(job), { timeout: 90_000 }).toBe("COMPLETED");
    await expect(page.locator("header").getByText("Completed").first()).toBeVisible();

    const all = (await events(server, job)).map((line) => line.seq);
    const heard = await page.evaluate(() => window.heard.map((line) => line.seq));
    const first = heard[0] ?? 0;
    expect(heard, "each once, in order, from the first that was heard to the last there is").toEqual(
      all.filter((seq) => seq >= first),
    );
    await expect(page.getByText(`${all.length.toLocaleString("en")} events`)).toBeVisible();
    // The browser logs by itself that an address does not answer.
    expect(complaints.filter((text) => !/ERR_CONNECTION|Failed to load resource|ERR_INCOMPLETE/.test(text))).toEqual(
      [],
    );
    await page.close();
  } finally {
    await server.stop();
  }
});
