/** The ten looks of a state: a colour, an icon and a word, which is the API's where it has one. Whatever the API says of a job or a step is one of them. */
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

/** What an open job is doing, in the API's words. Its status says how far it has come, and not what it waits for. */
export const ACTIVITIES = ["running", "queued", "waiting", "sleeping", "paused"] as const;
export type Activity = (typeof ACTIVITIES)[number];

const DOING: Readonly<Record<Activity, Look>> = {
  running: "running",
  queued: "queued",
  waiting: "waiting",
  sleeping: "pending",
  paused: "waiting",
};

const DOING_WORD: Readonly<Record<Activity, string>> = {
  running: "Running",
  queued: "Queued",
  waiting: "Waiting",
  sleeping: "Sleeping",
  paused: "Paused",
};

/** How a job is shown where it is known what it is doing. */
export interface Shown {
  readonly look: Look;
  readonly word: string;
  /** The same in the API's own words. */
  readonly tip: string;
}

export function shownJob(job: {
  readonly status: string;
  readonly is_paused: boolean;
  readonly activity?: Activity | null | undefined;
  readonly waiting_for?: string | null | undefined;
}): Shown {
  const { status } = job;
  const activity = job.activity ?? (job.is_paused ? "paused" : undefined);
  if (activity === undefined || isOver(status)) {
    const look = jobLook(status);
    return { look, word: saidOf(status) ?? wordOf(look), tip: `status ${status}` };
  }
  const isRetry = activity === "sleeping" && job.waiting_for === "retry";
  return {
    look: isRetry ? "retrying" : activityLook(activity),
    word: isRetry ? wordOf("retrying") : activityWord(activity),
    tip: `status ${status}, activity ${activity}`,
  };
}

/** Enums are open: an activity that this console does not know looks pending, and is called by its name. */
export function activityLook(activity: Activity): Look {
  return DOING[activity] ?? "pending";
}

export function activityWord(activity: Activity): string {
  return DOING_WORD[activity] ?? activity;
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
  succeeded: "Completed",
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
