/** Edges as pairs of vertex numbers, flat: 10,000 of them are one array and not 10,000. */
export type Pairs = Int32Array;

export interface Ranks {
  readonly rank: Int32Array;
  readonly count: number;
}

/**
 * Longest-path ranks: every vertex stands one rank after the last of those before it.
 *
 * The API never sends a cycle. Should one come nevertheless, its vertices stay where they were first put, and
 * `isForward` is false for the edge that closes it.
 */
export function rankByLongestPath(vertices: number, pairs: Pairs): Ranks {
  const rank = new Int32Array(vertices);
  const waits = new Int32Array(vertices);
  const after: number[][] = Array.from({ length: vertices }, () => []);
  for (let e = 0; e < pairs.length; e += 2) {
    const to = pairs[e + 1] as number;
    after[pairs[e] as number]?.push(to);
    waits[to] = (waits[to] as number) + 1;
  }
  const free: number[] = [];
  for (let v = 0; v < vertices; v++) if (waits[v] === 0) free.push(v);
  let last = 0;
  for (let next = 0; next < free.length; next++) {
    const from = free[next] as number;
    const behind = (rank[from] as number) + 1;
    for (const to of after[from] as number[]) {
      if ((rank[to] as number) < behind) rank[to] = behind;
      last = Math.max(last, rank[to] as number);
      waits[to] = (waits[to] as number) - 1;
      if (waits[to] === 0) free.push(to);
    }
  }
  return { rank, count: vertices === 0 ? 0 : last + 1 };
}

export function isForward(rank: Int32Array, from: number, to: number): boolean {
  return (rank[from] as number) < (rank[to] as number);
}
