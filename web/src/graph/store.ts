/**
 * How the steps of one job stand right now, outside React: a patch wakes only the cards that it names, and the canvas
 * once for all of them.
 */
import { useSyncExternalStore } from "react";
import type { Look } from "../state";
import type { Fan, GraphNode, StepNo, StepPatch } from "./types";

export type Step = GraphNode;
export type Counts = Readonly<Partial<Record<Look, number>>>;

export interface GraphStore {
  get(id: StepNo): Step | undefined;
  /** Learn steps that are not known yet, such as the children of a fan-out that was opened. */
  add(nodes: readonly GraphNode[]): void;
  /** Apply changes in order. Unknown steps are skipped, but they count for their fan-out. */
  patch(batch: readonly StepPatch[]): void;
  /** Steps by look; a fan-out counts as its children, and as itself while it has none. */
  counts(): Counts;
  /** Goes up with every patch. */
  version(): number;
  subscribe(id: StepNo, wake: () => void): () => void;
  subscribeAll(wake: () => void): () => void;
}

export function createGraphStore(nodes: readonly GraphNode[]): GraphStore {
  const steps = new Map<StepNo, Step>();
  /** Children that were heard of and not loaded, so that their next change is counted from where they were. */
  const strangers = new Map<StepNo, Look>();
  const cards = new Map<StepNo, Set<() => void>>();
  const everyone = new Set<() => void>();
  let counts: Partial<Record<Look, number>> = {};
  let version = 0;

  const count = (look: Look, by: number): void => {
    counts[look] = Math.max(0, (counts[look] ?? 0) + by);
  };
  const countStep = (step: Step, sign: number): void => {
    if (step.fan === undefined || isEmpty(step.fan)) count(step.look, sign);
    else for (const [look, many] of Object.entries(step.fan.by)) count(look as Look, sign * many);
  };
  const learn = (node: GraphNode): void => {
    steps.set(node.id, node);
    strangers.delete(node.id);
    if (node.parent === undefined) countStep(node, 1);
  };
  /** A child went from one state to another: so did one of its fan-out's. */
  const moveChild = (parent: StepNo, from: Look, to: Look, touched: Set<StepNo>): void => {
    const owner = steps.get(parent);
    if (owner === undefined || from === to) return;
    const by = { ...owner.fan?.by };
    const had = by[from] ?? 0;
    if (had > 0) by[from] = had - 1;
    by[to] = (by[to] ?? 0) + 1;
    const next: Step = { ...owner, fan: { total: owner.fan?.total ?? null, by } };
    countStep(owner, -1);
    countStep(next, 1);
    steps.set(parent, next);
    touched.add(parent);
  };
  const apply = (patch: StepPatch, touched: Set<StepNo>): void => {
    const step = steps.get(patch.id);
    if (step === undefined) {
      if (patch.parent === undefined || patch.look === undefined) return;
      moveChild(patch.parent, strangers.get(patch.id) ?? "pending", patch.look, touched);
      strangers.set(patch.id, patch.look);
      return;
    }
    const next: Step = { ...step, ...patch };
    steps.set(step.id, next);
    touched.add(step.id);
    if (step.parent !== undefined) moveChild(step.parent, step.look, next.look, touched);
    else if (step.fan !== next.fan || step.look !== next.look) {
      countStep(step, -1);
      countStep(next, 1);
    }
  };
  const wake = (touched: Iterable<StepNo>): void => {
    version++;
    for (const id of touched) for (const card of cards.get(id) ?? []) card();
    for (const one of everyone) one();
  };

  for (const node of nodes) learn(node);
  return {
    get: (id) => steps.get(id),
    counts: () => counts,
    version: () => version,
    add: (more) => {
      counts = { ...counts };
      const fresh = more.filter((node) => !steps.has(node.id));
      for (const node of fresh) learn(node);
      if (fresh.length > 0) wake(fresh.map((node) => node.id));
    },
    patch: (batch) => {
      counts = { ...counts };
      const touched = new Set<StepNo>();
      for (const patch of batch) apply(patch, touched);
      wake(touched);
    },
    subscribe: (id, card) => {
      const set = cards.get(id) ?? new Set();
      cards.set(id, set.add(card));
      return () => {
        set.delete(card);
        if (set.size === 0 && cards.get(id) === set) cards.delete(id);
      };
    },
    subscribeAll: (one) => {
      everyone.add(one);
      return () => everyone.delete(one);
    },
  };
}

function isEmpty(fan: Fan): boolean {
  return Object.values(fan.by).every((many) => many === 0);
}

export function useStep(store: GraphStore, id: StepNo): Step | undefined {
  return useSyncExternalStore(
    (wake) => store.subscribe(id, wake),
    () => store.get(id),
  );
}

export function useCounts(store: GraphStore): Counts {
  return useSyncExternalStore(store.subscribeAll, store.counts);
}
