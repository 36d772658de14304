import { useEffect, useMemo, useState } from "react";
import { type CriticalPath, criticalPath } from "./critical";
import { lineOf, relationsOf } from "./relations";
import type { GraphStore } from "./store";
import type { StepNo, Structure } from "./types";

const REFRESH_MS = 1_000;

/** What belongs to the selected step. */
export function useLine(structure: Structure, selected: StepNo | null): ReadonlySet<StepNo> | null {
  return useMemo(() => {
    const relations = relationsOf(structure);
    return selected === null || !relations.nodes.has(selected) ? null : lineOf(relations, selected);
  }, [structure, selected]);
}

/** The critical path while it is asked for: it grows as the job runs. */
export function useCritical(structure: Structure, store: GraphStore, isOn: boolean): CriticalPath | null {
  const [path, setPath] = useState<CriticalPath | null>(null);
  useEffect(() => {
    if (!isOn) {
      setPath(null);
      return;
    }
    const look = (): void => setPath(criticalPath(structure, store, Date.now()));
    look();
    const timer = setInterval(look, REFRESH_MS);
    return () => clearInterval(timer);
  }, [structure, store, isOn]);
  return path;
}
