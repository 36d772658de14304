/** Made-up jobs for the demo page, the same every time. */
import { step } from "./factory";
import type { GraphStore } from "./store";
import type { Edge, GraphNode, StepNo, StepPatch, Structure } from "./types";

export function createChance(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Columns of changing width, 1.2 edges for each step: what a large job without fan-outs would be. */
export function layeredJob(count: number): Structure {
  const chance = createChance(count);
  const nodes: GraphNode[] = [];
  const edges: Edge[] = [];
  let before: StepNo[] = [];
  const width = Math.max(3, Math.round(Math.sqrt(count) * 0.9));
  while (nodes.length < count) {
    const column: StepNo[] = [];
    const many = Math.min(count - nodes.length, 1 + Math.floor(chance() * 2 * width));
    for (let i = 0; i < many; i++) {
      const id = nodes.length;
      const name = ["fetch", "extract", "chunk", "embed", "upsert"][nodes.length % 5] as string;
      nodes.push(step(id, { name, label: `${name} ${id}`, meta: "main" }));
      column.push(id);
      const near = Math.floor((i / many) * before.length);
      const pick = (at: number): StepNo | undefined => before[Math.min(before.length - 1, Math.max(0, at))];
      const first = pick(near);
      if (first !== undefined) edges.push([first, id]);
      const second = pick(near + Math.floor(chance() * 5) - 2);
      if (second !== undefined && second !== first && chance() < 0.25) edges.push([second, id]);
    }
    before = column;
  }
  return { nodes, edges };
}

/** An ordinary recipe: a few steps, a small fan-out, and a step that needs all the others. */
export function recipeJob(count: number): Structure {
  const names = [
    "discover",
    "robots",
    "policy",
    "fetch",
    "extract",
    "embed",
    "upsert",
    "approve",
    "publish",
    "notify",
    "smoke",
  ];
  const edges: Edge[] = [[0, 1], [0, 2], [1, 3], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 8], [8, 9], [8, 10], [0, 8]]; // biome-ignore format: a graph
  const large = Math.max(13, count - names.length - 6);
  const fans = new Map([[3, 6], [5, large]]); // biome-ignore format: two fans
  const nodes = names.map((name, id) => {
    const total = fans.get(id);
    return step(id, { name, label: name, ...(total === undefined ? {} : { fan: { total, by: { pending: total } } }) });
  });
  let next = names.length;
  for (const [parent, total] of fans) {
    const name = names[parent] as string;
    for (let i = 0; i < total; i++) nodes.push(step(next++, { parent, name, label: `${name} #${i}` }));
  }
  return { nodes, edges };
}

/** Let the steps run, `perSecond` changes a second, some of them failing or being tried again. */
export function runJob(structure: Structure, store: GraphStore, perSecond: number): () => void {
  const chance = createChance(11);
  const waiting = structure.nodes.filter((node) => node.fan === undefined).map((node) => node.id);
  const running: StepNo[] = [];
  let next = 0;
  const change = (): StepPatch | undefined => {
    if (running.length < 40 && next < waiting.length) {
      const id = waiting[next++] as StepNo;
      running.push(id);
      return { id, look: "running", attempt: 1, startedAt: Date.now(), meta: "w-1" };
    }
    const id = running.splice(Math.floor(chance() * running.length), 1)[0];
    if (id === undefined) return undefined;
    const luck = chance();
    if (luck < 0.01) return { id, look: "failed", finishedAt: Date.now() };
    if (luck < 0.03) {
      running.push(id);
      return { id, look: "retrying", attempt: 2 };
    }
    return { id, look: "succeeded", finishedAt: Date.now() };
  };
  const timer = setInterval(() => {
    const batch: StepPatch[] = [];
    for (let i = 0; i < perSecond / 10; i++) {
      const patch = change();
      if (patch !== undefined) batch.push(patch);
    }
    if (batch.length > 0) store.patch(batch);
  }, 100);
  return () => clearInterval(timer);
}
