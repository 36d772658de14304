import { ChevronDown } from "lucide-react";
import { type KeyboardEvent, type ReactNode, useId, useRef } from "react";
import { Button, type Variant } from "./Button";
import { IconButton } from "./IconButton";

export interface MenuItem {
  readonly label: string;
  readonly icon?: ReactNode;
  readonly hint?: string;
  readonly isDanger?: boolean;
  /** Why it cannot be chosen now. */
  readonly why?: string | undefined;
  readonly onSelect: () => void;
}

interface MenuProps {
  readonly label: string;
  /** "-" draws a line. */
  readonly items: readonly (MenuItem | "-")[];
  /** With an icon the button is only that, and the label its name. */
  readonly icon?: ReactNode;
  readonly variant?: Variant;
}

/** A button and a list of acts: arrows walk, letters find, Escape and a press elsewhere close. */
export function Menu({ label, items, icon, variant = "plain" }: MenuProps) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);

  const open = (): void => {
    const box = list.current;
    if (box === null || opener.current === null) return;
    box.showPopover();
    place(box, opener.current);
    entries(box)[0]?.focus();
  };
  const close = (): void => {
    list.current?.hidePopover();
    opener.current?.focus();
  };
  const walk = (event: KeyboardEvent<HTMLDivElement>): void => {
    const all = entries(event.currentTarget);
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (event.key === "Tab" || event.key === "Escape") {
      event.preventDefault();
      close();
    } else if (to !== undefined) {
      event.preventDefault();
      all.at(to % all.length)?.focus();
    } else if (event.key.length === 1) {
      const found = [...all.slice(at + 1), ...all].find((one) =>
        one.textContent?.toLowerCase().startsWith(event.key.toLowerCase()),
      );
      found?.focus();
    }
  };
  const shared = { ref: opener, onClick: open, "aria-haspopup": "menu", "aria-controls": id } as const;

  return (
    <>
      {icon === undefined ? (
        <Button variant={variant} {...shared}>
          {label}
          <ChevronDown size={13} aria-hidden="true" className="-mr-0.5 text-dim" />
        </Button>
      ) : (
        <IconButton label={label} {...shared}>
          {icon}
        </IconButton>
      )}
      <div
        ref={list}
        id={id}
        role="menu"
        aria-label={label}
        popover="auto"
        tabIndex={-1}
        onKeyDown={walk}
        className="m-0 min-w-44 max-w-80 rounded-lg border border-line bg-panel p-1 text-fg shadow-float"
      >
        {items.map((item, i) =>
          item === "-" ? (
            // biome-ignore lint/suspicious/noArrayIndexKey: a line is only its place
            <hr key={i} className="my-1 border-line" />
          ) : (
            <Entry key={item.label} item={item} close={close} />
          ),
        )}
      </div>
    </>
  );
}

function Entry({ item, close }: { readonly item: MenuItem; readonly close: () => void }) {
  const select = (): void => {
    if (item.why !== undefined) return;
    close();
    item.onSelect();
  };
  return (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
      aria-disabled={item.why === undefined ? undefined : true}
      data-tip={item.why}
      onClick={select}
      className={`flex h-7 w-full cursor-pointer items-center gap-2 rounded-md px-2 text-left outline-none hover:bg-panel2 focus-visible:bg-panel2 aria-disabled:cursor-not-allowed aria-disabled:opacity-60 ${item.isDanger ? "text-danger" : ""}`}
    >
      {item.icon}
      <span className="flex-1 truncate">{item.label}</span>
      {item.hint !== undefined && <span className="pl-4 font-mono text-[10px] text-dim">{item.hint}</span>}
    </button>
  );
}

function entries(box: HTMLElement): HTMLElement[] {
  return [...box.querySelectorAll<HTMLElement>("[role=menuitem]")];
}

function place(box: HTMLElement, opener: HTMLElement): void {
  const at = opener.getBoundingClientRect();
  const { width, height } = box.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, innerWidth - width - 8));
  const below = at.bottom + 4;
  const top = below + height + 8 > innerHeight ? Math.max(8, at.top - height - 4) : below;
  box.style.inset = `${top}px auto auto ${left}px`;
}
