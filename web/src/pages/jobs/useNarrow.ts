import { useSyncExternalStore } from "react";

const NARROW = "(max-width: 639px)";

/** Whether a row has no room beside itself: then it is a card. */
export function useNarrow(): boolean {
  return useSyncExternalStore(
    (wake) => {
      const query = matchMedia(NARROW);
      query.addEventListener("change", wake);
      return () => query.removeEventListener("change", wake);
    },
    () => matchMedia(NARROW).matches,
  );
}
