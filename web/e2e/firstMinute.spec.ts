import type { Locator } from "@playwright/test";
import { expect, listen, test } from "./app";
import { Server } from "./server";

interface Step {
  readonly step: string;
  readonly status: string;
  readonly losses: number;
}

test("the first minute: the printed link, a moving graph, a killed worker, a person's word, the end", async ({
  browser,
}) => {
  test.setTimeout(150_000);
  const server = await Server.start();
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    listen(page, complaints);
    const steps = async (): Promise<readonly Step[]> =>
      (await server.ask<{ items: Step[] }>("GET", `/jobs/${job}/steps?limit=100`)).items;
    // A fan-out stands before its children.
    const step = (name: string): Locator => page.locator("[data-step]", { hasText: name }).first();
    const job = /jobs\/([0-9a-f-]+)/.exec(server.link)?.[1] ?? "";

    await page.goto(server.link);
    await expect(page.getByRole("heading", { level: 1 })).toContainText("first-minute");
    // All of the recipe is there before it is real, and it moves.
    for (const name of [
      "choose_photos",
      "develop",
      "ask_weather",
      "add_umbrellas",
      "lay_out",
      "approved",
      "print_book",
    ])
      await expect(step(name)).toBeVisible();
    await expect(step("choose_photos")).toContainText("completed", {
      timeout: 30_000,
    });
    await expect(step("develop")).toContainText("running");

    await expect
      .poll(async () => (await steps()).filter((one) => one.step === "develop" && one.status === "RUNNING").length)
      .toBeGreaterThan(1);
    await page.getByRole("button", { name: "Kill this worker" }).click();
    const story = page.getByRole("complementary", { name: "Demo" });
    await expect(story).toContainText(/Process \d+ was killed/);
    await expect(story).toContainText(/handed back/, { timeout: 30_000 });
    await expect(story).toContainText(/runs again, attempt 2/, { timeout: 30_000 });
    expect((await steps()).filter((one) => one.losses > 0).length).toBeGreaterThan(0);

    await page.getByRole("button", { name: "Send “approved”…" }).click({ timeout: 90_000 });
    const answer = page.getByRole("dialog");
    await expect(answer.getByLabel("Payload")).toHaveValue(/"by": "local"/);
    await answer.getByRole("button", { name: "Send “approved”" }).click();
    await expect(step("print_book")).toContainText("completed", {
      timeout: 30_000,
    });
    await expect(page.locator("header").getByText("Completed").first()).toBeVisible();
    await expect(step("add_umbrellas")).toContainText("skipped");
    expect(await server.status(job)).toBe("COMPLETED");
    expect(complaints).toEqual([]);
    await page.close();
  } finally {
    await server.stop();
  }
});
