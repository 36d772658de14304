import { type KeyboardEvent, useEffect, useRef } from "react";

export interface Act {
  readonly label: string;
  readonly hint?: string;
  readonly isDanger?: boolean;
  /** Why it cannot be done. */
  readonly why?: string | undefined;
  readonly onSelect: () => void;
}

interface RowMenuProps {
  readonly label: string;
  readonly acts: readonly Act[];
  /** Where it opens: the button of the row. */
  readonly at: HTMLElement;
  readonly onClose: () => void;
}

/** The acts of one row. There is one menu for all rows: a menu in each would be most of what a row weighs. */
export function RowMenu({ label, acts, at, onClose }: RowMenuProps) {
  const box = useRef<HTMLDivElement>(null);
  const latest = useRef(onClose);
  latest.current = onClose;
  useEffect(() => {
    const menu = box.current;
    if (menu === null) return;
    menu.showPopover();
    place(menu, at);
    entries(menu)[0]?.focus();
    const closed = (event: Event): void => {
      if ((event as ToggleEvent).newState === "closed") latest.current();
    };
    menu.addEventListener("toggle", closed);
    return () => menu.removeEventListener("toggle", closed);
  }, [at]);

  const close = (): void => {
    box.current?.hidePopover();
    at.closest<HTMLElement>("[data-job]")?.querySelector<HTMLElement>("a")?.focus();
  };
  const walk = (event: KeyboardEvent<HTMLDivElement>): void => {
    const all = entries(event.currentTarget);
    const now = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: now + 1, j: now + 1, ArrowUp: now - 1, k: now - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab" || event.key === "Escape" || event.key === ".") {
      event.preventDefault();
      close();
    } else if (to !== undefined) {
      event.preventDefault();
      all.at(to % all.length)?.focus();
    }
  };
  return (
    <div
      ref={box}
      role="menu"
      aria-label={label}
      popover="auto"
      tabIndex={-1}
      onKeyDown={walk}
      className="m-0 min-w-44 rounded-lg border border-line bg-panel p-1 text-fg shadow-float"
    >
      {acts.map((act) => (
        <button
          key={act.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          aria-disabled={act.why === undefined ? undefined : true}
          data-tip={act.why}
          onClick={() => {
            if (act.why !== undefined) return;
            close();
            act.onSelect();
          }}
          className={`flex h-7 w-full cursor-pointer items-center gap-2 rounded-md px-2 text-left outline-none hover:bg-panel2 focus-visible:bg-panel2 aria-disabled:cursor-not-allowed aria-disabled:opacity-60 ${act.isDanger ? "text-danger" : ""}`}
        >
          <span className="flex-1 truncate">{act.label}</span>
          {act.hint !== undefined && <span className="pl-4 font-mono text-[10px] text-dim">{act.hint}</span>}
        </button>
      ))}
    </div>
  );
}

function entries(menu: HTMLElement): HTMLElement[] {
  return [...menu.querySelectorAll<HTMLElement>("[role=menuitem]")];
}

function place(menu: HTMLElement, at: HTMLElement): void {
  const from = at.getBoundingClientRect();
  const { width, height } = menu.getBoundingClientRect();
  const left = Math.max(8, Math.min(from.right - width, innerWidth - width - 8));
  const below = from.bottom + 4;
  const top = below + height + 8 > innerHeight ? Math.max(8, from.top - height - 4) : below;
  menu.style.inset = `${top}px auto auto ${left}px`;
}
