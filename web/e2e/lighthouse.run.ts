/** Lighthouse on the two pages that people live in: `npm run lighthouse`. Run it on a quiet machine. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "./app";
import { chromium, QUIET } from "./browser";
import { furnish } from "./pages";

const PROOF = join(import.meta.dirname, "../proof/node_modules");
const SHOTS = join(import.meta.dirname, "../shots");
const RUNS = Number(process.env.LIGHTHOUSE_RUNS ?? 3);
const JOBS = 100;
const GOALS = {
  desktop: { performance: 95, accessibility: 100, "best-practices": 100 },
  mobile: { performance: 90, accessibility: 100, "best-practices": 100 },
};

interface Report {
  readonly lhr: {
    readonly categories: Readonly<Record<string, { readonly score: number | null }>>;
    readonly audits: Readonly<Record<string, { readonly score: number | null; readonly displayValue?: string }>>;
  };
}
interface Tab {
  setCookie(...cookies: object[]): Promise<void>;
  close(): Promise<void>;
}
interface Chromium {
  newPage(): Promise<Tab>;
  close(): Promise<void>;
}
type Lighthouse = (url: string, flags: object, config: object | undefined, page: Tab) => Promise<Report>;

/** It is installed apart, in `proof/`, and so has no types here. */
async function tool<T>(path: string): Promise<T> {
  return (await import(pathToFileURL(join(PROOF, path)).href)).default as T;
}

test("Jobs and Job are quick, accessible and well made", async ({ server, page }) => {
  test.setTimeout(900_000);
  const lighthouse = await tool<Lighthouse>("lighthouse/core/index.js");
  const desktop = await tool<object>("lighthouse/core/config/desktop-config.js");
  const puppeteer = await tool<{ launch(options: object): Promise<Chromium> }>(
    "puppeteer-core/lib/esm/puppeteer/puppeteer-core.js",
  );
  const { done } = await furnish(server);
  await Promise.all(Array.from({ length: JOBS }, (_, n) => server.submit("greeting", { name: `guest ${n}` })));
  const cookies = (await page.context().cookies()).map(({ name, value }) => ({ name, value, url: server.url }));
  const browser = await puppeteer.launch({ executablePath: chromium(), args: QUIET, headless: true });
  const lines: string[] = [];
  const short: string[] = [];
  try {
    for (const [name, path] of [
      ["Jobs", "/jobs"],
      ["Job", `/jobs/${done}`],
    ] as const)
      for (const [form, config] of [
        ["desktop", desktop],
        ["mobile", undefined],
      ] as const) {
        const runs: Report["lhr"][] = [];
        for (let run = 0; run < RUNS; run += 1) {
          const tab = await browser.newPage();
          await tab.setCookie(...cookies);
          const flags = { onlyCategories: Object.keys(GOALS[form]), output: "json", logLevel: "error" };
          runs.push((await lighthouse(server.at(path), flags, config, tab)).lhr);
          await tab.close();
        }
        for (const [what, goal] of Object.entries(GOALS[form])) {
          const scores = runs.map((lhr) => Math.round((lhr.categories[what]?.score ?? 0) * 100));
          const got = median(scores);
          lines.push(`${name} ${form} ${what}: ${got} (${scores.join(", ")}; goal ${goal})`);
          if (got < goal) short.push(lines.at(-1) as string);
        }
        const last = runs.at(-1);
        for (const audit of [
          "first-contentful-paint",
          "largest-contentful-paint",
          "total-blocking-time",
          "total-byte-weight",
        ])
          lines.push(`    ${audit}: ${last?.audits[audit]?.displayValue ?? "?"}`);
        for (const [id, audit] of Object.entries(last?.audits ?? {}))
          if (audit.score !== null && audit.score < 0.9) lines.push(`    below 90: ${id} ${audit.displayValue ?? ""}`);
      }
  } finally {
    await browser.close();
  }
  mkdirSync(SHOTS, { recursive: true });
  writeFileSync(join(SHOTS, "lighthouse.txt"), `${lines.join("\n")}\n`);
  console.info(lines.join("\n"));
  expect(short, "below their goals").toEqual([]);
});

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
}
