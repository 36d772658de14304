/** The messages between tabs and the hub, over any carrier. Everything here can be cloned. */
import type { Schemas } from "../api/schemas";
import type { JobDocument, JobPatch } from "./patch";
import type { Place, Topic } from "./topic";

export type GoneCode = Schemas["ConsoleGone"]["code"];

export type ToHub =
  | { readonly kind: "hello" }
  /** `isBack`: it was followed before, so what comes first is what was missed. */
  | { readonly kind: "join"; readonly topic: Topic; readonly place: Place | null; readonly isBack: boolean }
  | { readonly kind: "leave"; readonly topic: Topic }
  /** Still here; answered with the status, so that the tab knows the same of the hub. */
  | { readonly kind: "ping" }
  /** Another caller is signed in: the open stream belongs to the previous one. */
  | { readonly kind: "restart" }
  /** Something changed (back online, back in sight, signed in): do not wait for the next try. */
  | { readonly kind: "nudge" }
  | { readonly kind: "bye" };

export type Phase =
  /** No tab follows a topic. */
  | "idle"
  | "opening"
  | "open"
  /** The connection is gone, and will be tried again. */
  | "broken"
  | "signed-out";

export interface Status {
  readonly phase: Phase;
  /** When the server was heard of last, in milliseconds since 1970; null before the first time. */
  readonly lastAt: number | null;
  /** Updates taken in since the connection came back, while there are still more; null when there are none. */
  readonly behind: number | null;
}

export type ToTab =
  | { readonly kind: "status"; readonly status: Status }
  /** The topic is open from here on: a snapshot that is read from now on misses nothing. */
  | { readonly kind: "open"; readonly topic: Topic; readonly place: Place | null }
  | { readonly kind: "jobs"; readonly place: Place | null; readonly jobs: readonly JobDocument[] }
  | { readonly kind: "job"; readonly id: string; readonly patch: JobPatch }
  | { readonly kind: "reset"; readonly topic: Topic; readonly place: Place | null }
  | { readonly kind: "gone"; readonly topic: Topic; readonly code: GoneCode }
  /** There is a new hub: every tab joins its topics again. */
  | { readonly kind: "again" };

/** One tab, seen from the hub. */
export interface Port {
  post(message: ToTab): void;
}
