/** The ten looks of a state: a colour, an icon and a word. Whatever the API says of a job or a step is one of them. */
export type Look =
  | "pending"
  | "queued"
  | "ready"
  | "running"
  | "retrying"
  | "waiting"
  | "succeeded"
  | "failed"
  | "cancelled"
  | "skipped";

export const LOOKS: readonly Look[] = [
  "pending", "queued", "ready", "running", "retrying", "waiting", "succeeded", "failed", "cancelled", "skipped",
]; // biome-ignore format: one line reads as the list it is

const JOB: Record<string, Look> = {
  PENDING: "pending",
  APPROVAL_REQUIRED: "waiting",
  QUEUED: "queued",
  DISPATCHING: "ready",
  PROCESSING: "running",
  PREVIEW: "running",
  COMPLETED: "succeeded",
  FAILED: "failed",
  DENIED: "failed",
  TIMEOUT: "failed",
  CANCELLED: "cancelled",
  EXPIRED: "failed",
  OUTPUT_QUARANTINED: "failed",
};

const STEP: Record<string, Look> = {
  BLOCKED: "pending",
  READY: "ready",
  HELD: "waiting",
  QUEUED: "queued",
  RUNNING: "running",
  PARKED: "waiting",
  COMPLETED: "succeeded",
  SKIPPED: "skipped",
  FAILED: "failed",
  CANCELLED: "cancelled",
  DENIED: "failed",
  QUARANTINED: "failed",
  ABANDONED: "cancelled",
};

const OVER = new Set(["COMPLETED", "FAILED", "DENIED", "TIMEOUT", "CANCELLED", "EXPIRED", "OUTPUT_QUARANTINED"]);

/** How a job looks. A state that this console does not know yet looks pending: enums are open. */
export function jobLook(status: string): Look {
  return JOB[status] ?? "pending";
}

/** How a step looks; one that is parked until it is tried again is retrying. */
export function stepLook(status: string, waitingFor?: string | null): Look {
  if (status === "PARKED" && waitingFor === "retry") return "retrying";
  return STEP[status] ?? "pending";
}

/** Whether a job in this state can still change by itself. */
export function isOver(status: string): boolean {
  return OVER.has(status);
}

const WORD: Readonly<Record<Look, string>> = {
  pending: "Pending",
  queued: "Queued",
  ready: "Ready",
  running: "Running",
  retrying: "Retrying",
  waiting: "Waiting",
  succeeded: "Succeeded",
  failed: "Failed",
  cancelled: "Cancelled",
  skipped: "Skipped",
};

/** The word that goes with a look, wherever it is shown. */
export function wordOf(look: Look): string {
  return WORD[look];
}

/** States that share a look and are not the same thing: the pill says which. */
const SAID: Readonly<Record<string, string>> = {
  APPROVAL_REQUIRED: "Needs approval",
  DISPATCHING: "Dispatching",
  PREVIEW: "Preview",
  DENIED: "Denied",
  TIMEOUT: "Timed out",
  EXPIRED: "Expired",
  OUTPUT_QUARANTINED: "Quarantined",
  QUARANTINED: "Quarantined",
  ABANDONED: "Abandoned",
  HELD: "Held",
};

/** What the pill of a job or a step in this state says, where the look's word says too little. */
export function saidOf(status: string): string | undefined {
  return SAID[status];
}

export function color(look: Look): string {
  return `var(--st-${look})`;
}
