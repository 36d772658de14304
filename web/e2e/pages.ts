/** Every page of the console, with something on it, and how one knows that it is drawn. */
import type { Page } from "@playwright/test";
import { ended, expect } from "./app";
import type { Server } from "./server";

export interface Shown {
  readonly name: string;
  readonly path: string;
  /** What must be there, and how one gets to it, before the page is looked at. */
  readonly ready: (page: Page) => Promise<void>;
}

export interface Made {
  readonly failed: string;
  readonly done: string;
  readonly waiting: string;
}

/** Jobs of several kinds, so that no page is empty. */
export async function furnish(server: Server): Promise<Made> {
  const [done, failed, waiting, milk] = await Promise.all([
    server.submit("mosaic", { pace: 0.1 }, { labels: { team: "film" } }),
    server.submit("shopping", { item: "tea" }, { priority: 5 }),
    server.submit("errand"),
    server.submit("shopping", { item: "milk" }),
    server.submit("coat"),
    server.submit("greeting", { name: "Ada", times: 2 }),
  ]);
  const cancelled = await server.submit("errand", { place: "nowhere" });
  await server.ask("POST", `/jobs/${cancelled}/cancel`, { reason: "not today" });
  await ended(server, done);
  await ended(server, failed, "FAILED");
  // Another one, as the list shows a job that runs an older one again.
  await ended(server, milk, "FAILED");
  await server.ask("POST", `/jobs/${milk}/retry`, {});
  return { done, failed, waiting };
}

const heading =
  (name: string | RegExp) =>
  async (page: Page): Promise<void> => {
    await expect(page.getByRole("heading", { level: 1, name })).toBeVisible();
    await settled(page);
  };

/** Nothing is being loaded any more. */
export async function settled(page: Page): Promise<void> {
  await expect(page.locator('[aria-busy="true"]')).toHaveCount(0);
  await expect(page.getByRole("status").getByText("live", { exact: true })).toBeAttached();
}

const tab =
  (name: string) =>
  async (page: Page): Promise<void> => {
    await expect(page.getByRole("tab", { name })).toHaveAttribute("aria-selected", "true");
    await settled(page);
  };

export function shownPages({ failed, done, waiting }: Made): readonly Shown[] {
  return [
    { name: "overview", path: "/", ready: heading("Overview") },
    { name: "jobs", path: "/jobs", ready: heading("Jobs") },
    { name: "job-graph", path: `/jobs/${done}`, ready: tab("Graph") },
    { name: "job-failed", path: `/jobs/${failed}`, ready: tab("Graph") },
    { name: "job-waiting", path: `/jobs/${waiting}?step=0`, ready: tab("Graph") },
    { name: "job-timeline", path: `/jobs/${done}?tab=timeline`, ready: tab("Timeline") },
    { name: "job-steps", path: `/jobs/${done}?tab=steps`, ready: tab("Steps") },
    { name: "job-events", path: `/jobs/${done}?tab=events`, ready: tab("Events") },
    { name: "job-data", path: `/jobs/${done}?tab=data`, ready: tab("Input / Output") },
    { name: "recipes", path: "/recipes", ready: heading("Recipes") },
    { name: "recipe", path: "/recipes/greeting", ready: heading(/greeting/) },
    { name: "workers", path: "/workers", ready: heading("Workers") },
    { name: "providers", path: "/providers", ready: heading("Providers") },
    { name: "dead-letters", path: "/dead-letters", ready: heading("Dead letters") },
    { name: "audit", path: "/audit", ready: heading("Audit") },
    { name: "settings", path: "/settings", ready: heading("Settings") },
    { name: "not-found", path: "/nowhere", ready: heading(/./) },
  ];
}
