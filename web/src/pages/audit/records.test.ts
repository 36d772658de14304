import { describe, expect, test } from "vitest";
import { FIRST, faultsOf, instantOf, queryOf } from "./records";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const JOB = "0193e2a1-5b7c-7d3e-9f40-1c2d3e4f5a6b";

describe("the filter of the audit", () => {
  test("asks for the newest first, and from where the page before ended", () => {
    expect(queryOf(FIRST, null, NOW)).toBe("order=desc&limit=100");
    expect(queryOf(FIRST, 57, NOW)).toContain("before=57");
  });

  test("sends what was given, and nothing that cannot be read", () => {
    const query = queryOf({ caller: " ana ", event: "job_failed", job: JOB, since: "24h", until: "" }, null, NOW);
    expect(Object.fromEntries(new URLSearchParams(query))).toEqual({
      order: "desc",
      limit: "100",
      caller: "ana",
      event: "job_failed",
      job_id: JOB,
      since: "2026-01-01T00:00:00.000Z",
    });
    expect(queryOf({ ...FIRST, job: "x", since: "soon" }, null, NOW)).toBe("order=desc&limit=100");
    expect(faultsOf({ ...FIRST, job: "x", since: "soon" }, NOW)).toEqual({
      job: "Not a job's id",
      since: "Not an age",
    });
  });

  test.each([
    ["15m", "2026-01-01T23:45:00.000Z"],
    ["7d", "2025-12-26T00:00:00.000Z"],
    ["2026-01-01T00:00:00+01:00", "2025-12-31T23:00:00.000Z"],
    ["999999999999d", null],
    ["", null],
    ["yesterday", null],
  ])("reads %s as %s", (text, at) => {
    expect(instantOf(text, NOW)).toBe(at);
  });
});
