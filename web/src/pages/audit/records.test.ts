import { describe, expect, test } from "vitest";
import { exportRecords } from "./exporting";
import { type AuditRecord, FIRST, faultsOf, instantOf, queryOf } from "./records";

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

describe("an export of the audit", () => {
  const record = (no: number) => ({ no }) as AuditRecord;

  test("reads every page once, until there is none", async () => {
    const asked: (string | null)[] = [];
    const pages = [[5, 4], [3, 2], [1]].map((nos, i) => ({ items: nos.map(record), next: [4, 2, null][i] ?? null }));
    const found = await exportRecords(FIRST, NOW, 100, async (query) => {
      asked.push(new URLSearchParams(query).get("before"));
      return pages[asked.length - 1] ?? { items: [], next: null };
    });
    expect(asked).toEqual([null, "4", "2"]);
    expect(found).toEqual({ lines: [5, 4, 3, 2, 1].map((no) => `{"no":${no}}`), isCapped: false });
  });

  test("ends at its limit, and says so", async () => {
    const found = await exportRecords(FIRST, NOW, 4, async (query) => {
      const before = Number(new URLSearchParams(query).get("before") ?? 100);
      return { items: [record(before - 1), record(before - 2)], next: before - 2 };
    });
    expect(found.lines).toHaveLength(4);
    expect(found.isCapped).toBe(true);
  });

  test("does not go round for ever, whatever the server says", async () => {
    const found = await exportRecords(FIRST, NOW, 1_000, async () => ({ items: [record(1)], next: 7 }));
    expect(found.lines).toHaveLength(2);
  });
});
