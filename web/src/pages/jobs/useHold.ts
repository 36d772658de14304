import { useEffect, useState } from "react";
import type { ListStore } from "./listStore";

/** The list stays as it is while a pointer is over it, it is scrolled, or one of its rows is in use. */
export function useHold(store: ListStore, isBusy: boolean) {
  const [isPointing, point] = useState(false);
  const [isAway, scroll] = useState(false);
  const isHeld = isPointing || isAway || isBusy;
  useEffect(() => store.hold(isHeld), [store, isHeld]);
  return { point, scroll };
}
