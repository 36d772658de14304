import type { ReactNode } from "react";

export function Kbd({ children }: { readonly children: ReactNode }) {
  return (
    <kbd className="inline-grid h-[18px] min-w-[18px] place-items-center rounded border border-line bg-panel2 px-1 font-mono text-[10px] text-dim leading-none">
      {children}
    </kbd>
  );
}
