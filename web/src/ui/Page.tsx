import type { ReactNode } from "react";
import { useTitle } from "../use/useTitle";

interface PageProps {
  readonly title: string;
  /** Beside the title: a count, a state, a sentence. */
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  /** The page has its own scrolling parts: a graph, a list that draws only what is seen. */
  readonly isFull?: boolean;
}

/** What every page has: a title that is also the tab's, its acts at the right, and the rest scrolling below. */
export function Page({ title, lead, actions, children, isFull = false }: PageProps) {
  useTitle(title);
  return (
    <div className="flex h-full min-h-0 flex-col">
      <header className="flex min-h-12 shrink-0 flex-wrap items-center gap-x-3 gap-y-1.5 px-4 py-2.5">
        <h1 className="min-w-0 truncate font-semibold text-[15px] tracking-[-0.01em]">{title}</h1>
        {lead !== undefined && <div className="flex min-w-0 items-center gap-2 text-dim">{lead}</div>}
        {actions !== undefined && <div className="ml-auto flex flex-wrap items-center gap-2">{actions}</div>}
      </header>
      <div className={`min-h-0 flex-1 ${isFull ? "flex flex-col overflow-hidden" : "overflow-y-auto"}`}>{children}</div>
    </div>
  );
}
