import { expect, test } from "vitest";
import { fanGraph, graph, step } from "./factory";
import { CARD, fold, openAtFirst, stepCount } from "./fold";
import { lineOf, relationsOf } from "./relations";

const none: ReadonlySet<number> = new Set();

test("a folded fan-out is one card", () => {
  const folded = fold(fanGraph(5_000), none);
  expect(folded.vertices.map((v) => v.id)).toEqual([0, 1, 2]);
  expect(Array.from(folded.pairs)).toEqual([0, 1, 1, 2]);
});

test("an opened one is a box with a cell for each child, and has the same edges", () => {
  const folded = fold(fanGraph(5_000), new Set([1]));
  const box = folded.vertices[1];
  expect(box?.cells).toHaveLength(5_000);
  expect(box?.width).toBeGreaterThan(10 * CARD.width);
  expect(Array.from(folded.pairs)).toEqual([0, 1, 1, 2]);
});

test("folding again gives what was there before", () => {
  const structure = fanGraph(20);
  const before = fold(structure, none);
  fold(structure, new Set([1]));
  expect(fold(structure, none)).toEqual(before);
});

test("a fan-out whose children are not loaded stays a card", () => {
  const structure = graph([step(1, { fan: { total: 9, by: {} } })], []);
  expect(fold(structure, new Set([1])).vertices).toEqual([{ id: 1, ...CARD }]);
});

test("fan-outs of up to 12 start open, larger ones folded", () => {
  expect(openAtFirst(fanGraph(12))).toEqual(new Set([1]));
  expect(openAtFirst(fanGraph(13))).toEqual(none);
});

test("above 300 steps every fan-out starts folded", () => {
  const structure = fanGraph(8);
  const many = Array.from({ length: 300 }, (_, i) => step(1_000 + i));
  expect(openAtFirst({ ...structure, nodes: [...structure.nodes, ...many] })).toEqual(none);
});

test("steps are counted whether or not their fan-out is loaded", () => {
  expect(stepCount(fanGraph(40))).toBe(42);
  expect(stepCount(graph([1, step(2, { fan: { total: 500, by: {} } })], []))).toBe(501);
});

test("hiding steps joins what stood on both sides of them", () => {
  const structure = graph([1, 2, 3, 4], [[1, 2], [2, 3], [3, 4]]); // biome-ignore format: a graph on one line
  const folded = fold(structure, none, (id) => id === 1 || id === 4);
  expect(folded.vertices.map((v) => v.id)).toEqual([1, 4]);
  expect(Array.from(folded.pairs)).toEqual([0, 1]);
});

test("hiding children leaves only the others in the box", () => {
  const folded = fold(fanGraph(10), new Set([1]), (id) => id < 3 || id === 7);
  expect(folded.vertices[1]?.cells).toEqual([7]);
});

test("the line of a step is what leads to it and what follows from it", () => {
  const structure = graph([1, 2, 3, 4, 5], [[1, 2], [2, 3], [1, 4], [4, 5]]); // biome-ignore format: a graph on one line
  expect(lineOf(relationsOf(structure), 2)).toEqual(new Set([2, 1, 3]));
});

test("the line of a child is its fan-out's, without its siblings", () => {
  expect(lineOf(relationsOf(fanGraph(4)), 5)).toEqual(new Set([5, 1, 0, 2]));
});
