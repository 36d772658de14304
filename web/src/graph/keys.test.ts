import { describe, expect, test } from "vitest";
import { fanGraph, graph } from "./factory";
import { fold } from "./fold";
import { type Arrow, neighbour } from "./keys";
import { layered } from "./layered";
import { type Scene, sceneOf } from "./scene";
import type { Direction, Structure } from "./types";

function scene(structure: Structure, direction: Direction, open: readonly number[] = []): Scene {
  const folded = fold(structure, new Set(open));
  const sizes = Float32Array.from(folded.vertices.flatMap((vertex) => [vertex.width, vertex.height]));
  const view = { width: 1_000, height: 800 };
  const input = { vertices: folded.vertices.length, pairs: folded.pairs, sizes, view, direction };
  return sceneOf(folded, layered(input, () => 0)); // biome-ignore format: one line
}

const diamond = graph([1, 2, 3, 4], [[1, 2], [1, 3], [2, 4], [3, 4]]); // biome-ignore format: a graph on one line

describe.each([
  ["right", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"],
  ["down", "ArrowDown", "ArrowUp", "ArrowRight", "ArrowLeft"],
] as const)("in a graph that runs %s", (direction, on, back, aside, asideBack) => {
  const go = (id: number, arrow: Arrow) => neighbour(scene(diamond, direction), diamond, id, arrow);

  test("arrows along it follow the edges", () => {
    expect([2, 3]).toContain(go(1, on));
    expect(go(2, on)).toBe(4);
    expect(go(3, back)).toBe(1);
  });

  test("arrows across it go to the step beside", () => {
    expect(go(2, aside)).toBe(3);
    expect(go(3, asideBack)).toBe(2);
  });

  test("at its ends they lead nowhere", () => {
    expect(go(1, back)).toBeUndefined();
    expect(go(4, on)).toBeUndefined();
  });
});

test("an edge is followed even if another step is nearer", () => {
  const structure = graph([1, 2, 3, 4, 5], [[1, 2], [2, 3], [4, 5], [1, 3]]); // biome-ignore format: a graph on one line
  expect(neighbour(scene(structure, "right"), structure, 4, "ArrowRight")).toBe(5);
});

describe("in an opened fan-out", () => {
  const structure = fanGraph(10);
  const shown = scene(structure, "right", [1]);
  const go = (id: number, arrow: Arrow) => neighbour(shown, structure, id, arrow);

  test("arrows walk its cells", () => {
    expect(go(1, "ArrowDown")).toBe(3);
    expect(go(3, "ArrowRight")).toBe(4);
    expect(go(3, "ArrowUp")).toBe(1);
  });

  test("and leave it along its own edges", () => {
    const last = shown.items.filter((item) => item.role === "cell").toSorted((a, b) => b.x - a.x || a.y - b.y)[0];
    expect(go(last?.id ?? -1, "ArrowRight")).toBe(2);
    expect(go(3, "ArrowLeft")).toBe(0);
  });
});
