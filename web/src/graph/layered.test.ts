import { describe, expect, test } from "vitest";
import { type Layout, layered } from "./layered";
import type { Direction } from "./types";

const W = 176;
const H = 44;
const VIEW = { width: 1200, height: 800 };
const still = (): number => 0;

function lay(vertices: number, edges: readonly (readonly [number, number])[], direction?: Direction): Layout {
  const sizes = new Float32Array(2 * vertices);
  for (let v = 0; v < vertices; v++) sizes.set([W, H], 2 * v);
  return layered({ vertices, pairs: Int32Array.from(edges.flat()), sizes, view: VIEW, direction }, still);
}

/** A made-up graph that is the same every time: layers of changing width, with some edges that skip ranks. */
function made(vertices: number, seed = 7): [number, number][] {
  let state = seed;
  const chance = (): number => {
    state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
    return state / 0x7fffffff;
  };
  const edges: [number, number][] = [];
  for (let v = 1; v < vertices; v++) {
    edges.push([Math.max(0, v - 1 - Math.floor(chance() * 30)), v]);
    if (chance() < 0.2) edges.push([Math.floor(chance() * v), v]);
  }
  return edges;
}

function overlaps(layout: Layout): number {
  const order = Array.from(layout.x.keys()).sort((a, b) => (layout.x[a] ?? 0) - (layout.x[b] ?? 0));
  let found = 0;
  for (let i = 0; i < order.length; i++) {
    const a = order[i] as number;
    for (let j = i + 1; j < order.length; j++) {
      const b = order[j] as number;
      if ((layout.x[b] ?? 0) >= (layout.x[a] ?? 0) + W) break;
      if (Math.abs((layout.y[a] ?? 0) - (layout.y[b] ?? 0)) < H - 0.01) found++;
    }
  }
  return found;
}

describe.each(["right", "down"] as const)("laid out %s", (direction) => {
  test.each([2, 40, 300, 1_000])("%d steps do not overlap", (count) => {
    expect(overlaps(lay(count, made(count), direction))).toBe(0);
  });

  test("every step stands after those it needs", () => {
    const edges = made(400);
    const layout = lay(400, edges, direction);
    const along = direction === "right" ? layout.x : layout.y;
    const depth = direction === "right" ? W : H;
    for (const [from, to] of edges) expect(along[to]).toBeGreaterThan((along[from] ?? 0) + depth);
  });

  test("everything lies within the bounds", () => {
    const layout = lay(300, made(300), direction);
    for (let v = 0; v < 300; v++) {
      expect(layout.x[v]).toBeGreaterThanOrEqual(0);
      expect(layout.y[v]).toBeGreaterThanOrEqual(0);
      expect((layout.x[v] ?? 0) + W).toBeLessThanOrEqual(layout.width + 0.1);
      expect((layout.y[v] ?? 0) + H).toBeLessThanOrEqual(layout.height + 0.1);
    }
  });
});

test("the same graph is laid out the same way", () => {
  const first = lay(500, made(500));
  const second = lay(500, made(500));
  expect(second).toEqual(first);
});

test("a picture that can be shown larger from top to bottom is turned", () => {
  const wide: [number, number][] = Array.from({ length: 12 }, (_, i) => [i, i + 1]);
  expect(lay(13, wide).direction).toBe("down");
  expect(lay(3, [[0, 1], [1, 2]]).direction).toBe("right"); // biome-ignore format: a graph on one line
});

test("steps of unequal size do not overlap either", () => {
  const sizes = Float32Array.from([W, H, 900, 600, W, H, W, H]);
  const pairs = Int32Array.from([0, 1, 0, 2, 1, 3, 2, 3]);
  const layout = layered({ vertices: 4, pairs, sizes, view: VIEW, direction: "right" }, still);
  const [blockTop, besideTop] = [layout.y[1] ?? 0, layout.y[2] ?? 0];
  expect(besideTop >= blockTop + 600 || besideTop + H <= blockTop).toBe(true);
  expect(layout.x[3]).toBeGreaterThan((layout.x[1] ?? 0) + 900);
});

test("a long edge bends around what lies between", () => {
  const layout = lay(3, [[0, 1], [1, 2], [0, 2]], "right"); // biome-ignore format: a graph on one line
  const [from, to] = [layout.bendsFrom[2] ?? 0, layout.bendsFrom[3] ?? 0];
  expect(to - from).toBe(4);
  const crosswise = layout.bends[from + 1] ?? 0;
  const top = layout.y[1] ?? 0;
  expect(crosswise < top || crosswise > top + H).toBe(true);
});

test("crossings that can be undone are undone", () => {
  const twisted: [number, number][] = [];
  for (let i = 0; i < 10; i++) twisted.push([i, 19 - i]);
  expect(lay(20, twisted).crossings).toBe(0);
});

test("a graph with a cycle is laid out nevertheless", () => {
  const layout = lay(3, [[0, 1], [1, 2], [2, 1]]); // biome-ignore format: a graph on one line
  expect(overlaps(layout)).toBe(0);
});

test("no steps are no picture", () => {
  expect(lay(0, [])).toMatchObject({ width: 0, height: 0 });
});

test("a chain of 10,000 is laid out", () => {
  const layout = lay(10_000, Array.from({ length: 9_999 }, (_, i) => [i, i + 1] as const), "right"); // biome-ignore format: one line
  expect(layout.height).toBeCloseTo(H);
});

test("one to 5,000 to one is laid out", () => {
  const edges: [number, number][] = [];
  for (let i = 1; i <= 5_000; i++) edges.push([0, i], [i, 5_001]);
  const layout = lay(5_002, edges);
  expect(layout.crossings).toBe(0);
  expect(overlaps(layout)).toBe(0);
});

test("edges across hundreds of ranks do not drown the layout in dummies", () => {
  const edges: [number, number][] = [];
  for (let i = 1; i < 2_000; i++) edges.push([i - 1, i], [Math.floor(i / 3), i]);
  expect(lay(2_000, edges).bends.length).toBeLessThan(4 * (4 * 2_000 + 2_000));
});
