import { useSyncExternalStore } from "react";
import type { Live } from "./live";
import { currentLive, watchLive } from "./tab";

/** How live this tab is, for the dot. */
export function useLive(): Live {
  return useSyncExternalStore(watchLive, currentLive);
}
