import { expect, test } from "vitest";
import { criticalPath } from "./critical";
import { graph, step } from "./factory";
import { createGraphStore } from "./store";

const took = (id: number, ms: number) => step(id, { look: "succeeded", startedAt: 1_000, finishedAt: 1_000 + ms });
const find = (structure: ReturnType<typeof graph>, now = 9_000) =>
  criticalPath(structure, createGraphStore(structure.nodes), now);

test("it is the branch that took longest, not the one with most steps", () => {
  const nodes = [took(1, 10), took(2, 500), took(3, 100), took(4, 100), took(5, 10)];
  const edges = [[1, 2], [2, 5], [1, 3], [3, 4], [4, 5]] as const; // biome-ignore format: a graph on one line
  expect(find(graph(nodes, edges))).toEqual({ ids: [1, 2, 5], ms: 520 });
});

test("a running step counts up to now, and a waiting step does not count", () => {
  const nodes = [took(1, 10), step(2, { look: "running", startedAt: 8_000 }), step(3)];
  expect(find(graph(nodes, [[1, 2], [2, 3]]))).toEqual({ ids: [1, 2], ms: 1_010 }); // biome-ignore format: a graph
});

test("before anything ran there is none", () => {
  expect(find(graph([1, 2], [[1, 2]]))).toEqual({ ids: [], ms: 0 });
});

test("edges to steps that are not there are passed over", () => {
  expect(find(graph([took(1, 5)], [[1, 99]])).ids).toEqual([1]);
});
