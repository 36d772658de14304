import type { RefObject } from "react";
import { useKeys } from "../../use/useKeys";
import type { ListHandle } from "./List";
import type { Choice } from "./useChoice";

interface ListKeys {
  readonly ids: readonly string[];
  readonly at: string | null;
  readonly handle: RefObject<ListHandle | null>;
  readonly choice: Choice;
  readonly onOpen: (id: string) => void;
  readonly onMenu: (id: string, button: HTMLElement) => void;
}

/** j k walk, x chooses, Enter opens, . acts. `/` and `v` belong to the filter and to the views. */
export function useListKeys({ ids, at, handle, choice, onOpen, onMenu }: ListKeys): void {
  const walk = (by: number): void => {
    if (ids.length === 0) return;
    const now = at === null ? -1 : ids.indexOf(at);
    const to = now < 0 ? 0 : Math.min(Math.max(now + by, 0), ids.length - 1);
    handle.current?.focusRow(to);
  };
  const here = (run: (id: string) => void) => (at === null ? undefined : () => run(at));
  useKeys({
    j: () => walk(1),
    k: () => walk(-1),
    x: here((id) => choice.toggle(id, false)),
    "shift+x": here((id) => choice.toggle(id, true)),
    Enter: here(onOpen),
    ".": here((id) => {
      const button = handle.current?.menuButton(id);
      if (button) onMenu(id, button);
    }),
    Escape: choice.chosen.size > 0 ? choice.clear : undefined,
  });
}
