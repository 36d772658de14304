import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, listen, signIn, test } from "./app";
import { PACKAGE, RECIPES, Server } from "./server";

test("without a build there is a lite page: the list, and one live job to its end", async ({ browser }) => {
  // A package that was installed where nothing could be built: no checkout around it, no cache.
  const folder = mkdtempSync(join(tmpdir(), "windlass-lite-"));
  cpSync(PACKAGE, join(folder, "windlass"), { recursive: true, filter: (path) => !path.includes("__pycache__") });
  // A folder without files hides a console that is installed beside it.
  mkdirSync(join(folder, "windlass_console"));
  writeFileSync(join(folder, "windlass_console/__init__.py"), "");
  const server = await Server.start({
    app: RECIPES,
    env: { WINDLASS_CONSOLE_DIR: "", PYTHONPATH: folder, XDG_CACHE_HOME: folder },
  });
  try {
    const page = await browser.newPage();
    const complaints: string[] = [];
    listen(page, complaints);
    await signIn(page, server);
    const job = await server.submit("mosaic", { pace: 0.6 });
    await page.goto(server.at("/"));
    await expect(page.getByText("Windlass lite")).toBeVisible();
    await page
      .getByRole("link", { name: "mosaic" })
      .or(page.getByRole("link", { name: job }))
      .first()
      .click();
    await expect(page.getByText("paint").first()).toBeVisible();
    await expect(page.getByText("✓ Completed").first()).toBeVisible({ timeout: 30_000 });
    expect(complaints).toEqual([]);
    await page.close();
  } finally {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
