import type { Layers } from "./layers";

/** Steps stand where they belong, and edges that pass make way. */
const DUMMY_WEIGHT = 0.1;

/** A rank of this many steps or more is drawn to the middle: over 100 ranks, a small slant of each is a steep hill. */
const WIDE = 8;
const GRAVITY = 0.35;
/** Small graphs, where each bend is seen, are settled more often. */
const SMALL = 2_000;
const ROUNDS_SMALL = 4;

type Pull = "up" | "down" | "both";
const PASSES: readonly Pull[] = ["up", "down", "up", "down", "both", "both", "down", "up"];

/**
 * Where each vertex stands across the ranks (its middle): as near to the mean of its neighbours as the order of its
 * rank and the room that each needs allow.
 */
export function placeAcross(layers: Layers, room: Float64Array): Float64Array {
  const middle = new Float64Array(layers.total);
  for (const row of layers.rows) {
    let used = 0;
    for (const v of row) used += room[v] as number;
    let at = -used / 2;
    for (const v of row) {
      middle[v] = at + (room[v] as number) / 2;
      at += room[v] as number;
    }
  }
  const last = layers.rows.length - 1;
  const rounds = layers.total <= SMALL ? ROUNDS_SMALL : 1;
  for (let pass = 0; pass < rounds * PASSES.length; pass++) {
    const pull = PASSES[pass % PASSES.length] as Pull;
    for (let i = 0; i <= last; i++) {
      const row = layers.rows[pull === "down" ? last - i : i] as number[];
      settle(layers, row, pull, room, middle);
      if (row.length >= WIDE) drawToMiddle(row, middle);
    }
  }
  return middle;
}

function drawToMiddle(row: readonly number[], middle: Float64Array): void {
  const centre = ((middle[row[0] as number] as number) + (middle[row[row.length - 1] as number] as number)) / 2;
  for (const v of row) middle[v] = (middle[v] as number) - GRAVITY * centre;
}

/** Steps heed the steps beside them, and edges that only pass by if there are none: so chains of steps stay straight. */
function wish(layers: Layers, v: number, pull: Pull, middle: Float64Array): number {
  let [sum, count, passing, passes] = [0, 0, 0, 0];
  const heed = (side: readonly number[]): void => {
    for (const near of side) {
      if (near < layers.real || v >= layers.real) {
        sum += middle[near] as number;
        count++;
      } else {
        passing += middle[near] as number;
        passes++;
      }
    }
  };
  if (pull !== "down") heed(layers.up[v] as number[]);
  if (pull !== "up") heed(layers.down[v] as number[]);
  if (count === 0 && passes > 0) return passing / passes;
  return count === 0 ? (middle[v] as number) : sum / count;
}

/**
 * Pool adjacent violators: the least-squares places that keep order and distances. Vertices that would overlap join a
 * block, which then stands at the weighted mean of what its members wish.
 */
function settle(layers: Layers, row: readonly number[], pull: Pull, room: Float64Array, middle: Float64Array): void {
  const sums = new Float64Array(row.length);
  const weights = new Float64Array(row.length);
  const sizes = new Int32Array(row.length);
  const offsets = new Float64Array(row.length);
  let blocks = 0;
  for (let i = 0; i < row.length; i++) {
    const v = row[i] as number;
    if (i > 0)
      offsets[i] = (offsets[i - 1] as number) + ((room[row[i - 1] as number] as number) + (room[v] as number)) / 2;
    const weight = v < layers.real ? 1 : DUMMY_WEIGHT;
    sums[blocks] = weight * (wish(layers, v, pull, middle) - (offsets[i] as number));
    weights[blocks] = weight;
    sizes[blocks] = 1;
    blocks++;
    while (blocks > 1 && mean(sums, weights, blocks - 2) > mean(sums, weights, blocks - 1)) {
      blocks--;
      sums[blocks - 1] = (sums[blocks - 1] as number) + (sums[blocks] as number);
      weights[blocks - 1] = (weights[blocks - 1] as number) + (weights[blocks] as number);
      sizes[blocks - 1] = (sizes[blocks - 1] as number) + (sizes[blocks] as number);
    }
  }
  let i = 0;
  for (let b = 0; b < blocks; b++) {
    const at = mean(sums, weights, b);
    for (let k = 0; k < (sizes[b] as number); k++, i++) middle[row[i] as number] = at + (offsets[i] as number);
  }
}

function mean(sums: Float64Array, weights: Float64Array, b: number): number {
  return (sums[b] as number) / (weights[b] as number);
}
