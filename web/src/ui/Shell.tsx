import { Keyboard, Moon, Search, Sun } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useIsDark, usePreference } from "../use/usePreference";
import { Drawer } from "./Drawer";
import { IconButton } from "./IconButton";
import { Kbd } from "./Kbd";
import { Mark } from "./Mark";
import { MOD } from "./mod";
import { Nav } from "./Nav";
import { TipLayer } from "./TipLayer";
import { Toaster } from "./toast";

interface ShellProps {
  readonly children: ReactNode;
  /** Where one is: when it changes, the keyboard goes on in the page and not in the way that led to it. */
  readonly at: string;
  /** How fresh the page is. */
  readonly live?: ReactNode;
  /** Who is signed in. */
  readonly account?: ReactNode;
  readonly onSearch: () => void;
  readonly onKeys: () => void;
}

/** The frame of every page: where one is, where one can go, how fresh it is. */
export function Shell({ children, at, live, account, onSearch, onKeys }: ShellProps) {
  const main = useFocusOnMove(at);
  return (
    <div className="grid h-full grid-cols-[auto_minmax(0,1fr)] grid-rows-[44px_minmax(0,1fr)]">
      <a
        href="#main"
        className="sr-only focus:not-sr-only focus:fixed focus:top-2 focus:left-2 focus:z-50 focus:rounded-md focus:border focus:border-line focus:bg-panel focus:px-3 focus:py-1.5"
      >
        Skip to content
      </a>
      <header className="col-span-2 flex min-w-0 items-center gap-2 border-line border-b bg-panel px-2 sm:px-3">
        <Drawer />
        <span className="flex shrink-0 items-center gap-2 font-semibold tracking-[-0.01em] lg:w-[186px]">
          <Mark />
          <span className="max-[420px]:sr-only">Windlass</span>
        </span>
        <button
          type="button"
          onClick={onSearch}
          aria-keyshortcuts="Control+K Meta+K"
          className="flex h-7 min-w-0 max-w-80 flex-1 cursor-pointer items-center gap-2 rounded-md border border-line bg-field px-2 text-dim hover:border-line2"
        >
          <Search size={13} aria-hidden="true" className="shrink-0" />
          <span className="truncate">Search or jump to…</span>
          <span aria-hidden="true" className="ml-auto max-sm:hidden">
            <Kbd>{MOD === "⌘" ? "⌘K" : "Ctrl K"}</Kbd>
          </span>
        </button>
        <div className="ml-auto flex shrink-0 items-center gap-1 sm:gap-2">
          {live}
          <ThemeToggle />
          {account}
        </div>
        <TipLayer />
      </header>
      <div className="flex min-h-0 flex-col justify-between overflow-y-auto border-line border-r bg-panel p-2 max-sm:hidden lg:w-[208px]">
        <nav aria-label="Main">
          <Nav />
        </nav>
        <button
          type="button"
          onClick={onKeys}
          aria-keyshortcuts="?"
          className="flex h-8 cursor-pointer items-center gap-2.5 rounded-md px-2.5 text-dim hover:bg-hover hover:text-fg"
        >
          <Keyboard size={15} strokeWidth={1.8} aria-hidden="true" className="shrink-0" />
          <span className="max-lg:sr-only">Shortcuts</span>
          <span aria-hidden="true" className="ml-auto max-lg:hidden">
            <Kbd>?</Kbd>
          </span>
        </button>
      </div>
      <main
        ref={main}
        id="main"
        tabIndex={-1}
        className="min-h-0 min-w-0 overflow-hidden outline-none max-sm:col-span-2"
      >
        {children}
      </main>
      <Toaster />
    </div>
  );
}

function useFocusOnMove(at: string): React.RefObject<HTMLElement | null> {
  const main = useRef<HTMLElement>(null);
  const before = useRef(at);
  useEffect(() => {
    if (before.current === at) return;
    before.current = at;
    // A focus inside the page stays where it is.
    if (!main.current?.contains(document.activeElement)) main.current?.focus({ preventScroll: true });
  }, [at]);
  return main;
}

function ThemeToggle() {
  const [, setTheme] = usePreference("theme");
  const isDark = useIsDark();
  return (
    <IconButton
      label={isDark ? "Use the light theme" : "Use the dark theme"}
      onClick={() => setTheme(isDark ? "light" : "dark")}
    >
      {isDark ? <Sun size={15} aria-hidden="true" /> : <Moon size={15} aria-hidden="true" />}
    </IconButton>
  );
}
