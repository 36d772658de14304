import { describe, expect, test } from "vitest";
import { findSteps } from "./Find";
import { step } from "./factory";
import { isKept, keptBy } from "./filter";
import { lookOf } from "./look";
import { createGraphStore } from "./store";
import { durationText, metaText, stateText } from "./text";

describe("filters", () => {
  test("only failed keeps failed steps, and fan-outs that have some", () => {
    expect(isKept(step(1, { look: "failed" }), "failed")).toBe(true);
    expect(isKept(step(1, { look: "running" }), "failed")).toBe(false);
    const fan = { total: 9, by: { succeeded: 8, failed: 1 } };
    expect(isKept(step(1, { look: "running", fan }), "failed")).toBe(true);
  });

  test("hiding what is finished leaves what failed: it needs attention", () => {
    expect(isKept(step(1, { look: "succeeded" }), "unfinished")).toBe(false);
    expect(isKept(step(1, { look: "failed" }), "unfinished")).toBe(true);
    expect(isKept(step(1, { look: "pending" }), "unfinished")).toBe(true);
  });

  test("they look at how steps stand now", () => {
    const structure = { nodes: [step(1), step(2)], edges: [] };
    const store = createGraphStore(structure.nodes);
    store.patch([{ id: 2, look: "failed" }]);
    expect(keptBy(structure, store, "failed")).toEqual(new Set([2]));
  });
});

test("a fan-out looks like what its children do, until it is over", () => {
  const by = { succeeded: 3, running: 1 };
  expect(lookOf(step(1, { fan: { total: 9, by } }))).toBe("running");
  expect(lookOf(step(1, { fan: { total: 9, by: { pending: 9 } } }))).toBe("pending");
  expect(lookOf(step(1, { look: "failed", fan: { total: 9, by } }))).toBe("failed");
});

test("steps are found by their words, those that begin with them first", () => {
  const nodes = [
    step(1, { name: "refetch" }),
    step(2, { name: "fetch", label: "fetch #7" }),
    step(3, { name: "send" }),
  ];
  expect(findSteps({ nodes, edges: [] }, "fetch")).toEqual([2, 1]);
  expect(findSteps({ nodes, edges: [] }, "fetch 7")).toEqual([2]);
  expect(findSteps({ nodes, edges: [] }, "  ")).toEqual([]);
});

test("cards and screen readers say what matters", () => {
  const failed = step(1, { look: "failed", attempt: 3, meta: "main", startedAt: 1_000, finishedAt: 3_500 });
  expect(metaText(failed, false, 9_000)).toBe("main · 2.5 s · try 3");
  expect(stateText(failed)).toBe("failed");
  const fan = step(2, { look: "running", fan: { total: 40, by: { succeeded: 10, failed: 2, running: 28 } } });
  expect(metaText(fan, false, 0)).toBe("12 of 40 · 2 failed");
  expect(stateText(fan)).toBe("fan-out, running");
});

test("durations have units", () => {
  expect([90, 1_250, 65_000, 3_720_000].map(durationText)).toEqual(["90 ms", "1.3 s", "1 min 5 s", "1 h 2 min"]);
});
