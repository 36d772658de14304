import { Menu as MenuIcon } from "lucide-react";
import { useEffect, useRef } from "react";
import { useLocation } from "wouter";
import { IconButton } from "./IconButton";
import { Nav } from "./Nav";

/** On a narrow screen the ways to the pages are behind a button. */
export function Drawer() {
  const box = useRef<HTMLDialogElement>(null);
  const [path] = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: going somewhere closes it
  useEffect(() => box.current?.close(), [path]);
  return (
    <div className="sm:hidden">
      <IconButton label="Pages" onClick={() => box.current?.showModal()}>
        <MenuIcon size={16} aria-hidden="true" />
      </IconButton>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it already; the press is for pointers */}
      <dialog
        ref={box}
        aria-label="Pages"
        onClick={(event) => event.target === event.currentTarget && event.currentTarget.close()}
        className="m-0 h-dvh max-h-none w-60 max-w-[80vw] border-line border-r bg-panel p-3 text-fg backdrop:bg-shade"
      >
        <nav aria-label="Pages">
          <Nav isRail={false} />
        </nav>
      </dialog>
    </div>
  );
}
