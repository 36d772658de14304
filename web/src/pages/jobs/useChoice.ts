import { useCallback, useRef, useState } from "react";

export interface Choice {
  readonly chosen: ReadonlySet<string>;
  /** Choose a row or let it go; with a range, all from the one before to this. */
  readonly toggle: (id: string, isRange: boolean) => void;
  readonly clear: () => void;
  readonly chooseAll: () => void;
}

/** Which rows are chosen. Rows come and go meanwhile, so they are known by id and a range by what is shown now. */
export function useChoice(ids: () => readonly string[]): Choice {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(NOTHING);
  const anchor = useRef<string | null>(null);
  const latest = useRef(ids);
  latest.current = ids;
  const toggle = useCallback((id: string, isRange: boolean): void => {
    const from = anchor.current;
    anchor.current = id;
    setChosen((before) => {
      const next = new Set(before);
      if (isRange && from !== null) for (const one of between(latest.current(), from, id)) next.add(one);
      else if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const clear = useCallback((): void => {
    anchor.current = null;
    setChosen(NOTHING);
  }, []);
  const chooseAll = useCallback((): void => setChosen(new Set(latest.current())), []);
  return { chosen, toggle, clear, chooseAll };
}

const NOTHING: ReadonlySet<string> = new Set();

export function between(ids: readonly string[], one: string, other: string): readonly string[] {
  const [a, b] = [ids.indexOf(one), ids.indexOf(other)];
  if (a < 0 || b < 0) return b < 0 ? [] : [other];
  return ids.slice(Math.min(a, b), Math.max(a, b) + 1);
}
