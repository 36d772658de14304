/** What the dot says, made from what the hub says. */
import type { Status } from "./protocol";

export interface Live {
  readonly state: "live" | "catching-up" | "offline";
  /** Updates taken in so far while catching up. */
  readonly behind?: number;
  /** When the server was heard of last, in milliseconds since 1970. */
  readonly lastAt: number | null;
}

export const STARTING: Live = { state: "live", lastAt: null };

export function liveOf(status: Status, isOnline: boolean): Live {
  const { phase, lastAt, behind } = status;
  // A loopback server is there without a network too; only when it is not heard, the browser's word counts.
  if (phase === "broken" || phase === "signed-out" || (phase === "opening" && !isOnline)) {
    return { state: "offline", lastAt };
  }
  if (phase === "open" && behind !== null) return { state: "catching-up", behind, lastAt };
  if (phase === "opening" && lastAt !== null) return { state: "catching-up", lastAt };
  return { state: "live", lastAt };
}
