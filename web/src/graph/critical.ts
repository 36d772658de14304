import type { GraphStore, Step } from "./store";
import type { StepNo, Structure } from "./types";

export interface CriticalPath {
  /** First to last. */
  readonly ids: readonly StepNo[];
  readonly ms: number;
}

/** How long a step has taken so far. */
export function durationOf(step: Step | undefined, now: number): number {
  if (step?.startedAt == null) return 0;
  return Math.max(0, (step.finishedAt ?? now) - step.startedAt);
}

/** The chain of steps that made the job take as long as it did: the longest path by measured durations. */
export function criticalPath(structure: Structure, store: GraphStore, now: number): CriticalPath {
  const waits = new Map<StepNo, number>();
  const after = new Map<StepNo, StepNo[]>();
  for (const node of structure.nodes) {
    if (node.parent !== undefined) continue;
    waits.set(node.id, 0);
    after.set(node.id, []);
  }
  for (const [from, to] of structure.edges) {
    if (!waits.has(from) || !waits.has(to)) continue;
    after.get(from)?.push(to);
    waits.set(to, (waits.get(to) ?? 0) + 1);
  }
  const before = new Map<StepNo, StepNo>();
  const total = new Map<StepNo, number>();
  const free = [...waits].filter(([, count]) => count === 0).map(([id]) => id);
  let last: StepNo | undefined;
  let longest = 0;
  for (let i = 0; i < free.length; i++) {
    const id = free[i] as StepNo;
    const till = (total.get(id) ?? 0) + durationOf(store.get(id), now);
    if (till > longest) {
      longest = till;
      last = id;
    }
    for (const next of after.get(id) ?? []) {
      if (till > (total.get(next) ?? 0)) {
        total.set(next, till);
        before.set(next, id);
      }
      const left = (waits.get(next) ?? 1) - 1;
      waits.set(next, left);
      if (left === 0) free.push(next);
    }
  }
  const ids: StepNo[] = [];
  for (let at = last; at !== undefined; at = before.get(at)) ids.push(at);
  return { ids: ids.reverse(), ms: longest };
}
