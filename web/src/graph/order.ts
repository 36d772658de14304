import { countCrossings } from "./crossings";
import type { Layers } from "./layers";

const SWEEPS_MAX = 12;
const SWAP_PASSES_MAX = 4;
/** Two neighbours with more pairs of edges than this are not compared: a hub would cost as much as the whole graph. */
const SWAP_COST_MAX = 4_000;

/**
 * Sort every rank so that few edges cross: weighted-median sweeps down and up, each followed by swaps of neighbours, and
 * the best order seen is kept. Leaves `rows` sorted and says how many edges still cross.
 */
export function reduceCrossings(layers: Layers, isOverTime: () => boolean): number {
  const at = new Int32Array(layers.total);
  const note = (row: readonly number[]): void => {
    for (let i = 0; i < row.length; i++) at[row[i] as number] = i;
  };
  layers.rows.forEach(note);
  let fewest = countCrossings(layers, at);
  let best = layers.rows.map((row) => row.slice());
  const key = new Float64Array(layers.total);
  for (let sweep = 0; sweep < SWEEPS_MAX && fewest > 0 && !isOverTime(); sweep++) {
    const isDown = sweep % 2 === 0;
    const last = layers.rows.length - 1;
    for (let i = 1; i <= last; i++) {
      const row = layers.rows[isDown ? i : last - i] as number[];
      sortByMedian(row, isDown ? layers.up : layers.down, at, key);
      note(row);
    }
    swapNeighbours(layers, at, isOverTime);
    const crossings = countCrossings(layers, at);
    if (crossings < fewest) {
      fewest = crossings;
      best = layers.rows.map((row) => row.slice());
    }
  }
  for (let r = 0; r < best.length; r++) layers.rows[r] = best[r] as number[];
  return fewest;
}

/** Vertices without neighbours on that side keep their place; the others are sorted among their own places. */
function sortByMedian(row: number[], sides: readonly number[][], at: Int32Array, key: Float64Array): void {
  const movable: number[] = [];
  for (const v of row) {
    const side = sides[v] as number[];
    if (side.length === 0) continue;
    key[v] = weightedMedian(side, at);
    movable.push(v);
  }
  movable.sort((a, b) => (key[a] as number) - (key[b] as number));
  let next = 0;
  for (let i = 0; i < row.length; i++) {
    if ((sides[row[i] as number] as number[]).length > 0) row[i] = movable[next++] as number;
  }
}

/** With an even number of neighbours the side where they are closer together pulls harder. */
function weightedMedian(side: readonly number[], at: Int32Array): number {
  if (side.length === 1) return at[side[0] as number] as number;
  const places = side.map((v) => at[v] as number).sort((a, b) => a - b);
  const place = (i: number): number => places[i] as number;
  const middle = places.length >> 1;
  if (places.length % 2 === 1) return place(middle);
  if (places.length === 2) return (place(0) + place(1)) / 2;
  const left = place(middle - 1) - place(0);
  const right = place(places.length - 1) - place(middle);
  if (left + right === 0) return (place(middle - 1) + place(middle)) / 2;
  return (place(middle - 1) * right + place(middle) * left) / (left + right);
}

function swapNeighbours(layers: Layers, at: Int32Array, isOverTime: () => boolean): void {
  const { up, down } = layers;
  for (let pass = 0; pass < SWAP_PASSES_MAX && !isOverTime(); pass++) {
    let isBetter = false;
    for (const row of layers.rows) {
      for (let i = 0; i + 1 < row.length; i++) {
        const a = row[i] as number;
        const b = row[i + 1] as number;
        const [upA, upB, downA, downB] = [up[a], up[b], down[a], down[b]] as [number[], number[], number[], number[]];
        if (upA.length * upB.length + downA.length * downB.length > SWAP_COST_MAX) continue;
        const now = crossingsOf(upA, upB, at) + crossingsOf(downA, downB, at);
        if (now === 0 || now <= crossingsOf(upB, upA, at) + crossingsOf(downB, downA, at)) continue;
        row[i] = b;
        row[i + 1] = a;
        at[b] = i;
        at[a] = i + 1;
        isBetter = true;
      }
    }
    if (!isBetter) return;
  }
}

function crossingsOf(first: readonly number[], second: readonly number[], at: Int32Array): number {
  let crossings = 0;
  for (const a of first) for (const b of second) if ((at[a] as number) > (at[b] as number)) crossings++;
  return crossings;
}
