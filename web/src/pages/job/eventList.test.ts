import { expect, test } from "vitest";
import { sampleEvent, sampleLine } from "../../api/samples";
import type { EventType } from "../../api/schemas";
import { filteredLines, gapsIn, mergedLines } from "./eventList";

const page = (seq: number, type: EventType = "step.running", no: number | null = 1) =>
  sampleEvent(seq, { type, no, payload: { seq } });
const line = (seq: number) => sampleLine(seq, { no: 2 });

test("every event once, the newest first, and the whole one wins", () => {
  const lines = mergedLines([page(3), page(2)], [line(3), line(4)]);
  expect(lines.map((one) => [one.seq, one.hasPayload === true])).toEqual([[4, false], [3, true], [2, true]]); // biome-ignore format: pairs
  expect(gapsIn(lines)).toBe(0);
  expect(gapsIn(mergedLines([page(2)], [line(9)]))).toBe(6);
  expect(gapsIn([])).toBe(0);
});

test("a type is itself or a family", () => {
  const label = (no: number): string => (no === 1 ? "draw #4" : "");
  const lines = mergedLines(
    [page(1, "job.failed", null), page(2, "step.failed"), page(3, JSON.parse('"stepped"'))],
    [],
  );
  expect(filteredLines(lines, { type: "step", step: "" }, label).map((one) => one.seq)).toEqual([2]);
  expect(filteredLines(lines, { type: "job.failed", step: "" }, label).map((one) => one.seq)).toEqual([1]);
  expect(filteredLines(lines, { type: "", step: " DRAW" }, label).map((one) => one.seq)).toEqual([3, 2]);
});
