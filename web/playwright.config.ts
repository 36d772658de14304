import { defineConfig } from "@playwright/test";
import { chromium, QUIET } from "./e2e/browser";

export default defineConfig({
  testDir: "e2e",
  outputDir: "test-results",
  timeout: 60_000,
  expect: { timeout: 15_000 },
  // Each worker has a server of its own, and a file's tests share it.
  workers: Number(process.env.E2E_WORKERS ?? 2),
  forbidOnly: process.env.CI !== undefined,
  retries: 0,
  reporter: [["list"]],
  use: {
    viewport: { width: 1440, height: 860 },
    launchOptions: { executablePath: chromium(), args: QUIET },
    screenshot: "only-on-failure",
    trace: process.env.E2E_TRACE === undefined ? "off" : "retain-on-failure",
  },
  projects: [
    { name: "tests" },
    // What is made or measured, and asked for by name: npm run shots, picture, lighthouse, pixel.
    ...["shots", "picture", "lighthouse", "pixel"].map((name) => ({ name, testMatch: `${name}.run.ts` })),
  ],
});
