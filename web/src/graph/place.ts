import type { Layers } from "./layers";

/** A dummy is held straighter than a step: a long edge that wavers is what makes a graph look tangled. */
const DUMMY_WEIGHT = 4;

type Pull = "up" | "down" | "both";
const PASSES: readonly Pull[] = ["up", "down", "up", "down", "both", "both", "up", "both"];

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
  for (const pull of PASSES) {
    for (let i = 0; i <= last; i++)
      settle(layers, layers.rows[pull === "down" ? last - i : i] as number[], pull, room, middle);
  }
  return middle;
}

function wish(layers: Layers, v: number, pull: Pull, middle: Float64Array): number {
  let sum = 0;
  let count = 0;
  if (pull !== "down") {
    for (const near of layers.up[v] as number[]) sum += middle[near] as number;
    count += (layers.up[v] as number[]).length;
  }
  if (pull !== "up") {
    for (const near of layers.down[v] as number[]) sum += middle[near] as number;
    count += (layers.down[v] as number[]).length;
  }
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
