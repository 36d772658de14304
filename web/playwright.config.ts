import { execFileSync } from "node:child_process";
import { defineConfig } from "@playwright/test";

/** Debian's browser: nothing is downloaded for the tests. */
function chromium(): string {
  const named = process.env.CHROMIUM ?? "chromium";
  return named.includes("/") ? named : execFileSync("which", [named], { encoding: "utf8" }).trim();
}

const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

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
    { name: "tests", testIgnore: /shots/ },
    { name: "shots", testMatch: /shots/ },
  ],
});
