import type { ReactNode } from "react";

/** A name and what goes with it, in a list of two columns. */
export function Row({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}
