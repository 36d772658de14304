import { isForward, type Pairs, type Ranks } from "./ranks";

/** An edge that crosses more ranks than this is drawn as one curve: it would cost more order than it gives. */
export const SPAN_MAX = 24;
/** And so are all further ones once there are this many dummies for each vertex. */
const DUMMIES_PER_VERTEX = 4;
const DUMMIES_FREE = 2_000;

/** The graph with every edge one rank long: edges that were longer run through dummy vertices. */
export interface Layers {
  /** Vertices from here on are dummies. */
  readonly real: number;
  readonly total: number;
  readonly rank: readonly number[];
  readonly up: readonly number[][];
  readonly down: readonly number[][];
  /** The dummies of an edge, first to last; empty if the edge has none. */
  readonly chains: readonly (readonly number[] | undefined)[];
  /** The vertices of each rank, in order. Sorting them is what the sweeps are for. */
  readonly rows: number[][];
}

export function layersOf(vertices: number, pairs: Pairs, ranks: Ranks): Layers {
  const rank = Array.from(ranks.rank);
  const up: number[][] = Array.from({ length: vertices }, () => []);
  const down: number[][] = Array.from({ length: vertices }, () => []);
  const chains: (number[] | undefined)[] = new Array(pairs.length / 2);
  const most = DUMMIES_PER_VERTEX * vertices + DUMMIES_FREE;
  const join = (from: number, to: number): void => {
    down[from]?.push(to);
    up[to]?.push(from);
  };
  for (let e = 0; e < pairs.length; e += 2) {
    const from = pairs[e] as number;
    const to = pairs[e + 1] as number;
    if (!isForward(ranks.rank, from, to)) continue;
    const span = (rank[to] as number) - (rank[from] as number) - 1;
    if (span > SPAN_MAX || rank.length - vertices + span > most) continue;
    let at = from;
    const chain: number[] = [];
    for (let r = 1; r <= span; r++) {
      const dummy = rank.length;
      rank.push((rank[from] as number) + r);
      up.push([]);
      down.push([]);
      chain.push(dummy);
      join(at, dummy);
      at = dummy;
    }
    join(at, to);
    if (chain.length > 0) chains[e / 2] = chain;
  }
  const layers = { real: vertices, total: rank.length, rank, up, down, chains, rows: [] as number[][] };
  layers.rows.push(...firstOrder(layers, ranks.count));
  return layers;
}

/** Depth first from the first rank, so that what belongs together starts together. */
function firstOrder(layers: Omit<Layers, "rows">, count: number): number[][] {
  const rows: number[][] = Array.from({ length: count }, () => []);
  const seen = new Uint8Array(layers.total);
  const stack: number[] = [];
  const walk = (root: number): void => {
    stack.push(root);
    while (stack.length > 0) {
      const v = stack.pop() as number;
      if (seen[v] === 1) continue;
      seen[v] = 1;
      rows[layers.rank[v] as number]?.push(v);
      const next = layers.down[v] as number[];
      for (let i = next.length - 1; i >= 0; i--) if (seen[next[i] as number] === 0) stack.push(next[i] as number);
    }
  };
  for (let v = 0; v < layers.total; v++) if (layers.up[v]?.length === 0) walk(v);
  for (let v = 0; v < layers.total; v++) walk(v);
  return rows;
}
