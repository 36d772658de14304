import { useEffect, useState } from "react";
import type { Look } from "../state";
import type { GraphStore, Step } from "./store";
import type { StepNo, Structure } from "./types";

export type Filter = "all" | "failed" | "unfinished";

/** A new layout moves every step: not more often than one can follow. */
const REFRESH_MS = 2_000;
const FINISHED: readonly Look[] = ["succeeded", "skipped", "cancelled"];

export function isKept(step: Step, filter: Filter): boolean {
  if (filter === "all") return true;
  const looks: readonly string[] = step.fan === undefined ? [step.look] : [step.look, ...looksOf(step)];
  if (filter === "failed") return looks.includes("failed");
  return looks.some((look) => !FINISHED.includes(look as Look));
}

function looksOf(step: Step): string[] {
  return Object.entries(step.fan?.by ?? {}).flatMap(([look, count]) => (count > 0 ? [look] : []));
}

export function keptBy(structure: Structure, store: GraphStore, filter: Filter): ReadonlySet<StepNo> {
  const kept = new Set<StepNo>();
  for (const node of structure.nodes) if (isKept(store.get(node.id) ?? node, filter)) kept.add(node.id);
  return kept;
}

/** The steps that a filter keeps, looked at again every now and then; `null` when it keeps all. */
export function useKept(structure: Structure, store: GraphStore, filter: Filter): ReadonlySet<StepNo> | null {
  const [kept, setKept] = useState<ReadonlySet<StepNo> | null>(null);
  useEffect(() => {
    if (filter === "all") {
      setKept(null);
      return;
    }
    const look = (): void => {
      const next = keptBy(structure, store, filter);
      setKept((before) => (before !== null && isSame(before, next) ? before : next));
    };
    look();
    const timer = setInterval(look, REFRESH_MS);
    return () => clearInterval(timer);
  }, [structure, store, filter]);
  return kept;
}

function isSame(a: ReadonlySet<StepNo>, b: ReadonlySet<StepNo>): boolean {
  return a.size === b.size && [...a].every((id) => b.has(id));
}
