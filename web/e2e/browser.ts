import { execFileSync } from "node:child_process";

/** The system's own browser: nothing is downloaded for the tests. */
export function chromium(): string {
  const named = process.env.CHROMIUM ?? "chromium";
  return named.includes("/") ? named : execFileSync("which", [named], { encoding: "utf8" }).trim();
}

/** It speaks to nobody but the server that is tested. */
export const QUIET = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];
