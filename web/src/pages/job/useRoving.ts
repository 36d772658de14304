import { type KeyboardEvent, useEffect, useRef, useState } from "react";
import type { StepNo } from "../../graph/types";

const PAGE = 12;

export interface Roving {
  /** The row that the Tab key leads to. */
  readonly stop: number;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/** One stop of the Tab key for all rows; arrows, Home, End and the page keys walk, also to rows that are not drawn yet. */
export function useRoving(rows: readonly StepNo[], selected: StepNo | null, scrollTo: (at: number) => void): Roving {
  const [at, setAt] = useState(0);
  const wanted = useRef<number | null>(null);
  const stop = Math.min(at, Math.max(0, rows.length - 1));
  // biome-ignore lint/correctness/useExhaustiveDependencies: a step that is selected elsewhere is walked from
  useEffect(() => {
    const found = selected === null ? -1 : rows.indexOf(selected);
    if (found >= 0) setAt(found);
  }, [selected]);
  useEffect(() => {
    if (wanted.current === null) return;
    const button = document.querySelector<HTMLElement>(`[data-row="${wanted.current}"] button`);
    if (button === null) return;
    wanted.current = null;
    button.focus({ preventScroll: true });
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if ((event.target as HTMLElement).closest("[data-row]") === null) return;
    const to = {
      ...{ ArrowDown: stop + 1, j: stop + 1, ArrowUp: stop - 1, k: stop - 1 },
      ...{ PageDown: stop + PAGE, PageUp: stop - PAGE, Home: 0, End: rows.length - 1 },
    }[event.key];
    if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(rows.length - 1, to));
    wanted.current = next;
    setAt(next);
    scrollTo(next);
  };
  return { stop, onKeyDown };
}
