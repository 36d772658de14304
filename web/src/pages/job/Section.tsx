import type { ReactNode } from "react";

interface SectionProps {
  readonly title: string;
  readonly aside?: ReactNode;
  readonly children: ReactNode;
}

/** A part of the inspector. */
export function Section({ title, aside, children }: SectionProps) {
  return (
    <section aria-label={title} className="min-w-0">
      <h3 className="mb-1.5 flex items-center justify-between font-medium text-[11px] text-dim uppercase tracking-wide">
        {title}
        <span>{aside}</span>
      </h3>
      {children}
    </section>
  );
}
