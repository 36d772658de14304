/** How long from an event in the database to its line on the screen: `npm run pixel`. Run it on a quiet machine. */
import { expect, test } from "./app";

interface Seen {
  readonly seq: number;
  /** Milliseconds since 1970, after the frame in which the line was drawn. */
  readonly at: number;
}

declare global {
  interface Window {
    seen: Seen[];
  }
}

const GOAL_MS = 300;

test("an event is on the screen soon after it happened", async ({ page, server }) => {
  test.setTimeout(180_000);
  await page.addInitScript(() => {
    window.seen = [];
    const known = new Set<number>();
    const look = (): void => {
      const fresh: number[] = [];
      for (const one of document.querySelectorAll('[aria-label^="Payload of event "]')) {
        const seq = Number(one.getAttribute("aria-label")?.split(" ").at(-1));
        if (!known.has(seq)) {
          known.add(seq);
          fresh.push(seq);
        }
      }
      if (fresh.length === 0) return;
      // After the next frame was handed over: the line is drawn.
      requestAnimationFrame(() =>
        setTimeout(() =>
          window.seen.push(...fresh.map((seq) => ({ seq, at: performance.timeOrigin + performance.now() }))),
        ),
      );
    };
    document.addEventListener("DOMContentLoaded", () =>
      new MutationObserver(look).observe(document.body, { childList: true, subtree: true }),
    );
  });
  const job = await server.submit("ticking", { count: 90, pace: 0.2 });
  await page.goto(server.at(`/jobs/${job}?tab=events`));
  await expect.poll(() => page.evaluate(() => window.seen.length), { timeout: 30_000 }).toBeGreaterThan(0);
  const opened = Date.now();
  await expect.poll(() => server.status(job), { timeout: 120_000 }).toBe("COMPLETED");
  await expect(page.locator("header").getByText("Completed").first()).toBeVisible();

  const happened = new Map<number, number>();
  for (let after = 0; ; ) {
    const { items } = await server.ask<{ items: { seq: number; at: string }[] }>(
      "GET",
      `/jobs/${job}/events?after=${after}&limit=200`,
    );
    if (items.length === 0) break;
    for (const one of items) happened.set(one.seq, Date.parse(one.at));
    after = items.at(-1)?.seq ?? after;
  }
  // What had happened before the page was open was not waited for.
  const seen = (await page.evaluate(() => window.seen)).filter((one) => (happened.get(one.seq) ?? 0) > opened);
  const waits = seen.map((one) => one.at - (happened.get(one.seq) ?? 0)).sort((a, b) => a - b);
  const part = (share: number): number => Math.round(waits[Math.floor((waits.length - 1) * share)] ?? Number.NaN);
  console.info(
    `event to pixel: ${waits.length} events, p50 ${part(0.5)} ms, p95 ${part(0.95)} ms, most ${part(1)} ms (goal p95 ${GOAL_MS} ms)`,
  );
  expect(waits.length).toBeGreaterThan(50);
  expect(part(0.95)).toBeLessThanOrEqual(GOAL_MS);
});
