import { type RefObject, useEffect, useRef } from "react";

/** What an address points at is brought into view, once: afterwards the page is the reader's. */
export function useMarked<E extends HTMLElement>(isMarked: boolean): RefObject<E | null> {
  const ref = useRef<E>(null);
  useEffect(() => {
    if (isMarked) ref.current?.scrollIntoView({ block: "center" });
  }, [isMarked]);
  return ref;
}

/** How it is told from the others. */
export const MARKED = "border-accent ring-1 ring-accent";
