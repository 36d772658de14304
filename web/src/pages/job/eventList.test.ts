import { expect, test } from "vitest";
import { filteredLines, gapsIn, mergedLines } from "./eventList";
import type { EventDocument, EventLine } from "./types";

const page = (seq: number, type = "step.running", no: number | null = 1) =>
  ({
    seq,
    type,
    no,
    at: "2026-11-16T00:00:00Z",
    attempt: 1,
    source: "w",
    payload: { seq },
  }) as unknown as EventDocument;
const line = (seq: number, type = "step.running"): EventLine => ({ seq, type, no: 2, at: "", attempt: 1, source: "w" });

test("every event once, the newest first, and the whole one wins", () => {
  const lines = mergedLines([page(3), page(2)], [line(3), line(4)]);
  expect(lines.map((one) => [one.seq, one.hasPayload === true])).toEqual([[4, false], [3, true], [2, true]]); // biome-ignore format: pairs
  expect(gapsIn(lines)).toBe(0);
  expect(gapsIn(mergedLines([page(2)], [line(9)]))).toBe(6);
  expect(gapsIn([])).toBe(0);
});

test("a type is itself or a family", () => {
  const label = (no: number): string => (no === 1 ? "draw #4" : "");
  const lines = mergedLines([page(1, "job.failed", null), page(2, "step.failed"), page(3, "stepped")], []);
  expect(filteredLines(lines, { type: "step", step: "" }, label).map((one) => one.seq)).toEqual([2]);
  expect(filteredLines(lines, { type: "job.failed", step: "" }, label).map((one) => one.seq)).toEqual([1]);
  expect(filteredLines(lines, { type: "", step: " DRAW" }, label).map((one) => one.seq)).toEqual([3, 2]);
});
