import { expect, test } from "vitest";
import { fanGraph } from "./factory";
import { BOX_HEAD, fold } from "./fold";
import { heldView } from "./heldView";
import { layered } from "./layered";
import { type Scene, sceneOf } from "./scene";

function scene(children: number, open: readonly number[]): Scene {
  const folded = fold(fanGraph(children), new Set(open));
  const sizes = Float32Array.from(folded.vertices.flatMap((vertex) => [vertex.width, vertex.height]));
  const view = { width: 1_000, height: 800 };
  const input = { vertices: folded.vertices.length, pairs: folded.pairs, sizes, view, direction: "right" as const };
  return sceneOf(folded, layered(input, () => 0)); // biome-ignore format: one line
}

test("the cells of an opened fan-out lie in its box, below its head, and apart", () => {
  const { items, byId } = scene(50, [1]);
  const box = byId.get(1);
  const cells = items.filter((item) => item.role === "cell");
  expect(cells).toHaveLength(50);
  for (const cell of cells) {
    expect(cell.x).toBeGreaterThan(box?.x ?? 0);
    expect(cell.y).toBeGreaterThanOrEqual((box?.y ?? 0) + BOX_HEAD);
    expect(cell.x + cell.width).toBeLessThan((box?.x ?? 0) + (box?.width ?? 0));
    expect(cell.y + cell.height).toBeLessThan((box?.y ?? 0) + (box?.height ?? 0));
    const over = cells.filter(
      (other) => other !== cell && Math.abs(other.x - cell.x) < cell.width && Math.abs(other.y - cell.y) < cell.height,
    );
    expect(over).toEqual([]);
  }
});

test("what is in a rectangle is found, near or far", () => {
  const shown = scene(2_000, [1]);
  const cell = shown.items.find((item) => item.id === 1_500);
  const [x, y] = [(cell?.x ?? 0) + 5, (cell?.y ?? 0) + 5];
  const ids = shown.within({ x0: x, y0: y, x1: x + 1, y1: y + 1 }).map((item) => item.id);
  expect(ids).toEqual([1, 1_500]);
  expect(shown.within({ x0: -1e6, y0: -1e6, x1: 1e6, y1: 1e6 })).toHaveLength(2_003);
});

test("a box is pointed at by its head only", () => {
  const shown = scene(20, [1]);
  const box = shown.byId.get(1);
  const [x, y] = [(box?.x ?? 0) + 3, box?.y ?? 0];
  expect(shown.at(x, y + 10)?.id).toBe(1);
  expect(shown.at(x, y + BOX_HEAD + 20)).toBeUndefined();
});

test("the step that is looked at stays in place when a fan-out opens", () => {
  const [before, after] = [scene(500, []), scene(500, [1])];
  const view = { x: 10, y: 20, zoom: 1 };
  const size = { width: 1_000, height: 800 };
  const moved = heldView(view, before, after, 2, size);
  const place = (of: Scene, from: typeof view) => (of.byId.get(2)?.x ?? 0) * from.zoom + from.x;
  expect(place(after, moved)).toBeCloseTo(place(before, view));
});
