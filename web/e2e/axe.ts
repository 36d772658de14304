/** axe-core in the page: the rules of WCAG 2.0 to 2.2, A and AA, and best practice. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "@playwright/test";
import type { AxeResults } from "axe-core";
import { expect } from "./app";

const SOURCE = readFileSync(join(import.meta.dirname, "../node_modules/axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** Rules that axe leaves out unless they are named: what is seen of a control must be part of what is heard. */
const ALSO = { "label-content-name-mismatch": { enabled: true } };
export const THEMES = ["light", "dark"] as const;

/** What axe finds wrong with the page as it is now, a line for each element. */
async function violations(page: Page): Promise<string[]> {
  // As a script of the page it would be refused, and rightly: the page takes scripts from its own server only.
  await page.evaluate(`window.axe ?? (() => { ${SOURCE} })()`);
  const options = { runOnly: { type: "tag", values: TAGS }, rules: ALSO, resultTypes: ["violations"] };
  const run = `axe.run(${JSON.stringify(options)})`;
  const found = (await page.evaluate(run)) as AxeResults;
  return found.violations.flatMap((rule) =>
    rule.nodes.map((node) => `${rule.id}: ${node.target.join(" ")}\n    ${node.failureSummary?.replaceAll("\n", " ")}`),
  );
}

/** Nothing is wrong with it, light or dark. */
export async function expectGood(page: Page, what: string): Promise<void> {
  for (const theme of THEMES) {
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await expect(page.locator("html")).toHaveClass(theme === "dark" ? /dark/ : /^(?!.*dark)/);
    expect.soft(await violations(page), `${what}, ${theme}`).toEqual([]);
  }
}
