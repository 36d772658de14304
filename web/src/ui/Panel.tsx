import type { ReactNode } from "react";

interface PanelProps {
  readonly title?: ReactNode;
  readonly lead?: ReactNode;
  readonly actions?: ReactNode;
  readonly children: ReactNode;
  readonly className?: string;
}

/** A framed part of a page. */
export function Panel({ title, lead, actions, children, className = "" }: PanelProps) {
  return (
    <section className={`min-w-0 overflow-hidden rounded-xl border border-line bg-panel ${className}`}>
      {title !== undefined && (
        <header className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 border-line border-b px-4 py-2">
          <h2 className="font-semibold">{title}</h2>
          {lead !== undefined && <span className="text-dim">{lead}</span>}
          {actions !== undefined && <div className="ml-auto flex items-center gap-2">{actions}</div>}
        </header>
      )}
      {children}
    </section>
  );
}
