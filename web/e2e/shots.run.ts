/** Pictures of every page in both themes, to be looked at: `npm run shots` writes them to `shots/`. */
import { join } from "node:path";
import { test } from "./app";
import { THEMES } from "./axe";
import { furnish, shownPages } from "./pages";

const FOLDER = join(import.meta.dirname, "../shots");
const WIDTHS = [1440, 320];

test("pictures of every page", async ({ page, server }) => {
  test.setTimeout(300_000);
  const made = await furnish(server);
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: width < 600 ? 720 : 860 });
    for (const shown of shownPages(made)) {
      await page.goto(server.at(shown.path));
      await shown.ready(page);
      for (const theme of THEMES) {
        await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
        await page.screenshot({ path: join(FOLDER, `${shown.name}-${theme}-${width}.png`), animations: "disabled" });
      }
    }
  }
});
