import { expect, test } from "vitest";
import { step } from "../../graph/factory";
import { createGraphStore } from "../../graph/store";
import { lookNamed, tableOf, type Wanted } from "./stepTable";

const nodes = [
  step(0, { label: "plan", name: "plan", look: "succeeded", startedAt: 10, finishedAt: 20, attempt: 1 }),
  step(1, { label: "draw", name: "draw", fan: { total: 2, by: { failed: 1, running: 1 } }, look: "waiting" }),
  step(2, { label: "bind", name: "bind", meta: "waits for approved", look: "waiting" }),
  step(3, { label: "draw #10", name: "draw", parent: 1, look: "failed", startedAt: 30, finishedAt: 35, attempt: 3 }),
  step(4, { label: "draw #2", name: "draw", parent: 1, look: "running", startedAt: 25, attempt: 1 }),
];
const labels = (wanted: Partial<Wanted>): string[] => {
  const ids = tableOf(
    { nodes, edges: [] },
    createGraphStore(nodes),
    { text: "", look: null, sort: "", ...wanted },
    100,
  );
  return ids.map((id) => nodes[id]?.label as string);
};

test("children stand under their fan-out", () => {
  expect(labels({})).toEqual(["plan", "draw", "draw #10", "draw #2", "bind"]);
});

test("text and state narrow it down", () => {
  expect(labels({ text: "DRAW #" })).toEqual(["draw #10", "draw #2"]);
  expect(labels({ text: "approved" })).toEqual(["bind"]);
  expect(labels({ look: "failed" })).toEqual(["draw #10"]);
  // A fan-out whose children run is running.
  expect(labels({ look: "running" })).toEqual(["draw", "draw #2"]);
  expect(labels({ text: "(.*[" })).toEqual([]);
});

test("columns sort both ways, numbers as numbers", () => {
  expect(labels({ sort: "step", text: "draw #" })).toEqual(["draw #2", "draw #10"]);
  expect(labels({ sort: "-step", text: "draw #" })).toEqual(["draw #10", "draw #2"]);
  expect(labels({ sort: "state" })[0]).toBe("draw #10");
  expect(labels({ sort: "-took" })[0]).toBe("draw #2");
  expect(labels({ sort: "started" }).slice(0, 3)).toEqual(["plan", "draw #2", "draw #10"]);
  // An invalid address must not break the page.
  expect(labels({ sort: "nonsense" })).toHaveLength(5);
  expect(lookNamed("odd")).toBeNull();
});
