import { Menu as MenuIcon, Moon, Search, Sun } from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { useIsDark, usePreference } from "../use/usePreference";
import { IconButton } from "./IconButton";
import { Kbd } from "./Kbd";
import { Mark } from "./Mark";
import { MOD } from "./mod";
import { Nav } from "./Nav";
import { TipLayer } from "./TipLayer";
import { Toaster } from "./toast";

interface ShellProps {
  readonly children: ReactNode;
  /** How fresh the page is. */
  readonly live?: ReactNode;
  /** Who is signed in. */
  readonly account?: ReactNode;
  readonly onSearch: () => void;
}

/** The frame of every page: where one is, where one can go, how fresh it is. */
export function Shell({ children, live, account, onSearch }: ShellProps) {
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
          <span className="max-[400px]:sr-only">Windlass</span>
        </span>
        <button
          type="button"
          onClick={onSearch}
          aria-keyshortcuts="Control+K Meta+K"
          aria-label="Search or jump to"
          className="flex h-7 min-w-0 max-w-80 flex-1 cursor-pointer items-center gap-2 rounded-md border border-line bg-field px-2 text-dim hover:border-line2"
        >
          <Search size={13} aria-hidden="true" className="shrink-0" />
          <span className="truncate">Search or jump to…</span>
          <span className="ml-auto max-sm:hidden">
            <Kbd>{MOD === "⌘" ? "⌘K" : "Ctrl K"}</Kbd>
          </span>
        </button>
        <div className="ml-auto flex shrink-0 items-center gap-1 sm:gap-2">
          {live}
          <ThemeToggle />
          {account}
        </div>
      </header>
      <nav aria-label="Main" className="border-line border-r bg-panel p-2 max-sm:hidden lg:w-[208px]">
        <Nav />
      </nav>
      <main id="main" tabIndex={-1} className="min-h-0 min-w-0 overflow-hidden outline-none max-sm:col-span-2">
        {children}
      </main>
      <Toaster />
      <TipLayer />
    </div>
  );
}

/** On a narrow screen the ways to the pages are behind a button. */
function Drawer() {
  const box = useRef<HTMLDialogElement>(null);
  const [path] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes it
  useEffect(() => box.current?.close(), [path]);
  return (
    <div className="sm:hidden">
      <IconButton label="Pages" onClick={() => box.current?.showModal()}>
        <MenuIcon size={16} aria-hidden="true" />
      </IconButton>
      <dialog
        ref={box}
        aria-label="Pages"
        onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
        onKeyDown={() => undefined}
        className="m-0 h-dvh max-h-none w-60 max-w-[80vw] border-line border-r bg-panel p-3 text-fg backdrop:bg-shade"
      >
        <nav aria-label="Pages">
          <Nav isRail={false} />
        </nav>
      </dialog>
    </div>
  );
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
