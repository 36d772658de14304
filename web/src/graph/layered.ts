/**
 * Our own layered layout: longest-path ranks, dummies for long edges, few crossings, places near their neighbours.
 *
 * The order within the ranks does not depend on which way the graph runs, so it is found once and placed both ways; the
 * way that can be shown larger wins. Pure over plain arrays: it runs in a worker, and in a test without one.
 */
import { type Layers, layersOf } from "./layers";
import { reduceCrossings } from "./order";
import { placeAcross } from "./place";
import { type Pairs, rankByLongestPath } from "./ranks";
import type { Direction } from "./types";

const BUDGET_MS = 250;
const GAP_ALONG: Record<Direction, number> = { right: 56, down: 44 };
const GAP_ACROSS: Record<Direction, number> = { right: 14, down: 20 };
const DUMMY_ROOM = 14;
/** Left to right is how time is read; only a clearly larger picture turns it. */
const TURN_GAIN = 1.05;
const LARGE_ENOUGH = 0.8;

export interface LayoutInput {
  readonly vertices: number;
  readonly pairs: Pairs;
  /** Width and height of each vertex, flat. */
  readonly sizes: Float32Array;
  readonly view: { readonly width: number; readonly height: number };
  /** Only in this direction, also if the result looks worse. */
  readonly direction?: Direction | undefined;
}

export interface Layout {
  readonly x: Float32Array;
  readonly y: Float32Array;
  readonly width: number;
  readonly height: number;
  readonly direction: Direction;
  /** Points that edge `e` runs through: `bends` from `bendsFrom[e]` to `bendsFrom[e + 1]`, x and y in turn. */
  readonly bends: Float32Array;
  readonly bendsFrom: Int32Array;
  readonly crossings: number;
  readonly ms: number;
}

export function layered(input: LayoutInput, clock: () => number = () => performance.now()): Layout {
  const began = clock();
  const isOverTime = (): boolean => clock() - began > BUDGET_MS;
  const ranks = rankByLongestPath(input.vertices, input.pairs);
  const layers = layersOf(input.vertices, input.pairs, ranks);
  const crossings = reduceCrossings(layers, isOverTime);
  const place = (direction: Direction): Layout => ({
    ...placed(input, layers, direction),
    direction,
    crossings,
    ms: clock() - began,
  });
  if (input.direction !== undefined) return place(input.direction);
  const right = place("right");
  if (zoomOf(right, input.view) >= LARGE_ENOUGH) return right;
  const down = place("down");
  return zoomOf(down, input.view) > zoomOf(right, input.view) * TURN_GAIN ? down : right;
}

function zoomOf(layout: Layout, view: LayoutInput["view"]): number {
  return Math.min(1, view.width / Math.max(1, layout.width), view.height / Math.max(1, layout.height));
}

type Placed = Pick<Layout, "x" | "y" | "width" | "height" | "bends" | "bendsFrom">;

function placed(input: LayoutInput, layers: Layers, direction: Direction): Placed {
  const isRight = direction === "right";
  const along = (v: number): number => input.sizes[2 * v + (isRight ? 0 : 1)] as number;
  const across = (v: number): number => input.sizes[2 * v + (isRight ? 1 : 0)] as number;
  const room = new Float64Array(layers.total).fill(DUMMY_ROOM);
  for (let v = 0; v < layers.real; v++) room[v] = across(v) + GAP_ACROSS[direction];
  const middle = placeAcross(layers, room);

  const starts: number[] = [];
  const depths: number[] = [];
  let end = 0;
  for (const row of layers.rows) {
    let depth = 0;
    for (const v of row) if (v < layers.real) depth = Math.max(depth, along(v));
    starts.push(end);
    depths.push(depth);
    end += depth + GAP_ALONG[direction];
  }
  const length = Math.max(0, end - GAP_ALONG[direction]);

  let low = Number.POSITIVE_INFINITY;
  let high = Number.NEGATIVE_INFINITY;
  for (let v = 0; v < layers.real; v++) {
    low = Math.min(low, (middle[v] as number) - across(v) / 2);
    high = Math.max(high, (middle[v] as number) + across(v) / 2);
  }
  if (layers.real === 0) low = high = 0;

  const x = new Float32Array(layers.real);
  const y = new Float32Array(layers.real);
  for (let v = 0; v < layers.real; v++) {
    const rank = layers.rank[v] as number;
    const lengthwise = (starts[rank] as number) + ((depths[rank] as number) - along(v)) / 2;
    const crosswise = (middle[v] as number) - across(v) / 2 - low;
    x[v] = isRight ? lengthwise : crosswise;
    y[v] = isRight ? crosswise : lengthwise;
  }
  const bends: number[] = [];
  const bendsFrom = new Int32Array(input.pairs.length / 2 + 1);
  for (let e = 0; e < bendsFrom.length - 1; e++) {
    for (const dummy of layers.chains[e] ?? []) {
      const rank = layers.rank[dummy] as number;
      const start = starts[rank] as number;
      const crosswise = (middle[dummy] as number) - low;
      // In and out of the rank: between them the edge runs straight, past its neighbours.
      for (const lengthwise of [start, start + (depths[rank] as number)]) {
        bends.push(isRight ? lengthwise : crosswise, isRight ? crosswise : lengthwise);
      }
    }
    bendsFrom[e + 1] = bends.length;
  }
  const breadth = high - low;
  return {
    x,
    y,
    width: isRight ? length : breadth,
    height: isRight ? breadth : length,
    bends: Float32Array.from(bends),
    bendsFrom,
  };
}
