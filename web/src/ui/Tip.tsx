import type { ReactNode } from "react";

interface TipProps {
  readonly text: string;
  readonly children: ReactNode;
  readonly className?: string;
}

/** Something said of what it surrounds when one points at it or reaches it by key. `data-tip` on any element does the same. */
export function Tip({ text, children, className = "" }: TipProps) {
  return (
    <span data-tip={text} className={className}>
      {children}
    </span>
  );
}
