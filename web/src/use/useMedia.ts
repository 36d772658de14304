import { useCallback, useSyncExternalStore } from "react";

/** Whether the screen is like this now: `useMedia("(width < 64rem)")`. */
export function useMedia(query: string): boolean {
  const listen = useCallback(
    (hear: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", hear);
      return () => media.removeEventListener("change", hear);
    },
    [query],
  );
  return useSyncExternalStore(listen, () => matchMedia(query).matches);
}
