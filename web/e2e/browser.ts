import { execFileSync } from "node:child_process";

/** The system's own browser: nothing is downloaded for the tests. */
export function chromium(): string {
  const named = process.env.CHROMIUM ?? "chromium";
  return named.includes("/") ? named : execFileSync("which", [named], { encoding: "utf8" }).trim();
}

/** The browser reaches only the server under test. */
export const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
