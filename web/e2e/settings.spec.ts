import { expect, test } from "./app";

test("a key is made, shown once, works, and is refused once it is revoked", async ({ page, server }) => {
  await page.goto(server.at("/settings"));
  await page.getByRole("button", { name: "New key" }).click();
  // The letters of the keyboard map are only letters while one writes.
  await page.getByLabel("What it is for").pressSequentially("g j is no way out of here?");
  await page.getByRole("textbox", { name: "Caller" }).fill("indexer");
  await page.getByRole("button", { name: "Make the key" }).click();
  const shown = page.locator("[data-key]");
  await expect(shown).toHaveText(/^wl_/);
  const key = (await shown.textContent()) ?? "";
  const ask = async (): Promise<number> => {
    const answer = await fetch(`${server.url}/me`, { headers: { "X-API-Key": key } });
    return answer.status;
  };
  expect(await ask()).toBe(200);
  await page.getByRole("button", { name: "I have kept it" }).click();
  await page.reload();
  const row = page.getByRole("row", { name: /is no way out/ });
  await expect(row).toContainText("indexer");
  await expect(page.getByText(key)).toHaveCount(0);

  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("button", { name: "Revoke the key" }).click();
  await expect(row).toHaveCount(0);
  // Every server hears of it, a moment later.
  await expect.poll(ask).toBe(401);
  await page.getByRole("button", { name: /Show ended/ }).click();
  await expect(row).toContainText("Revoked");
});

test("theme, density and time zone are kept, and another tab follows", async ({ page, server }) => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(server.at("/settings"));
  const root = page.locator("html");
  await expect(root).toHaveClass(/dark/);
  const other = await page.context().newPage();
  await other.goto(server.at("/settings"));
  await page.getByText("Light", { exact: true }).click();
  await page.getByText("Compact", { exact: true }).click();
  await page.getByLabel("Time zone").selectOption("Asia/Tokyo");
  await expect(page.getByText(/It is .* GMT\+9/)).toBeVisible();
  await expect(root).not.toHaveClass(/dark/);
  await expect(other.locator("html")).not.toHaveClass(/dark/);
  await page.reload();
  await expect(root).not.toHaveClass(/dark/);
  await expect(root).toHaveAttribute("data-density", "compact");
  await expect(page.getByLabel("Time zone")).toHaveValue("Asia/Tokyo");
  await page.getByText("System", { exact: true }).click();
  await expect(root).toHaveClass(/dark/);
  await page.emulateMedia({ colorScheme: "light" });
  await expect(root).not.toHaveClass(/dark/);
  await other.close();
});

test("Enter presses the button that has the focus, whatever a page does with it", async ({ page, server }) => {
  await server.submit("errand");
  await page.goto(server.at("/jobs"));
  await expect(page.getByRole("link", { name: /…/ }).first()).toBeVisible();
  await page.keyboard.press("j");
  await page
    .getByRole("button", { name: "Use the light theme" })
    .or(page.getByRole("button", { name: "Use the dark theme" }))
    .focus();
  const isDark = await page.evaluate(() => document.documentElement.classList.contains("dark"));
  await page.keyboard.press("Enter");
  await expect.poll(() => page.evaluate(() => document.documentElement.classList.contains("dark"))).toBe(!isDark);
  expect(page.url()).toBe(server.at("/jobs"));
});
