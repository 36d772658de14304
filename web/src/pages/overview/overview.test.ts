import { describe, expect, test } from "vitest";
import { axisText, minuteText } from "./clock";
import { consolePath, isQuiet, type Overview, percentText, successOf } from "./overview";

const QUIET: Overview = {
  as_of: "2026-01-01T00:00:00Z",
  attention: [],
  throughput: { minutes: [], completed: [], failed: [] },
  queues: [],
  recipes: [],
  totals: { open: 0, running: 0, queued: 0, waiting: 0, sleeping: 0, paused: 0 },
  is_capped: false,
};

describe("a share in per cent", () => {
  test.each([
    [null, "–"],
    [1, "100 %"],
    [0, "0 %"],
    [0.9999, "99.9 %"],
    [0.00001, "0.1 %"],
    [0.955, "95.5 %"],
    [0.5, "50 %"],
  ])("%s is %s", (share, text) => {
    expect(percentText(share)).toBe(text);
  });

  test("of jobs that have not ended is not known", () => {
    expect(successOf({ completed: 0, failed: 0 })).toBeNull();
    expect(successOf({ completed: 3, failed: 1 })).toBe(0.75);
  });
});

describe("an overview", () => {
  test("is quiet when nothing ran, even if no worker is there", () => {
    const noWorkers = { kind: "no_workers" as const, title: "", detail: "", count: 1, link: "/workers" };
    expect(isQuiet({ ...QUIET, attention: [noWorkers] })).toBe(true);
    expect(isQuiet({ ...QUIET, throughput: { minutes: ["x"], completed: [0], failed: [1] } })).toBe(false);
    expect(isQuiet({ ...QUIET, totals: { ...QUIET.totals, open: 1 } })).toBe(false);
    expect(isQuiet({ ...QUIET, attention: [{ ...noWorkers, kind: "dead_letters" }] })).toBe(false);
  });
});

describe("a link of the server", () => {
  test.each([
    ["/console/jobs?state=failed", "/jobs?state=failed"],
    ["/jobs?state=failed", "/jobs?state=failed"],
    ["https://example.com/", "/"],
    ["//example.com/", "/"],
    ["/\\example.com", "/"],
    ["javascript:alert(1)", "/"],
    ["", "/"],
  ])("%s leads to %s", (link, path) => {
    expect(consolePath(link)).toBe(path);
  });
});

describe("a minute", () => {
  test("is told in the zone that was chosen, and in the browser's own if that is not known", () => {
    expect(minuteText("2026-01-01T12:05:00Z", "Asia/Tokyo")).toMatch(/^21:05 /);
    expect(axisText(Date.parse("2026-01-01T12:05:00Z") / 1_000, "UTC")).toBe("12:05");
    expect(minuteText("2026-01-01T12:05:00Z", "Mars/Base")).toMatch(/^\d\d:05/);
  });
});
