import type { Layers } from "./layers";

/**
 * How many edges cross between two ranks: a Fenwick tree over the lower rank counts, for each edge, the edges that were
 * drawn before it and end after it.
 */
function between(layers: Layers, r: number, at: Int32Array, tree: Int32Array): number {
  const width = (layers.rows[r + 1] as number[]).length;
  tree.fill(0, 0, width + 2);
  let crossings = 0;
  let drawn = 0;
  for (const v of layers.rows[r] as number[]) {
    const ends = layers.down[v] as number[];
    for (const end of ends) {
      let before = 0;
      for (let i = (at[end] as number) + 1; i > 0; i -= i & -i) before += tree[i] as number;
      crossings += drawn - before;
    }
    for (const end of ends)
      for (let i = (at[end] as number) + 1; i <= width; i += i & -i) tree[i] = (tree[i] as number) + 1;
    drawn += ends.length;
  }
  return crossings;
}

export function countCrossings(layers: Layers, at: Int32Array): number {
  const widest = layers.rows.reduce((most, row) => Math.max(most, row.length), 0);
  const tree = new Int32Array(widest + 2);
  let total = 0;
  for (let r = 0; r + 1 < layers.rows.length; r++) total += between(layers, r, at, tree);
  return total;
}
