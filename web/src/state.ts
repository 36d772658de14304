import type { Activity, JobState, StepState } from "./api/schemas";
import { waitsFor } from "./waitText";

/** The ten looks of a state: a colour, an icon and a word. Every state of a job or a step has one of them. */
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

const JOB: Readonly<Record<JobState, Look>> = {
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

const STEP: Readonly<Record<StepState, Look>> = {
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

/** The looks of a job or a step that cannot change by itself any more. */
const ENDED: readonly Look[] = ["succeeded", "failed", "cancelled", "skipped"];

/** Every state of a job, in the order in which a job passes them. */
export const JOB_STATES = Object.keys(JOB) as readonly JobState[];

export function isJobState(text: string): text is JobState {
  return Object.hasOwn(JOB, text);
}

export function isStepState(text: string): text is StepState {
  return Object.hasOwn(STEP, text);
}

/** How a job looks. A state of a newer server looks pending. */
export function jobLook(status: JobState): Look {
  return JOB[status] ?? "pending";
}

export type { Activity } from "./api/schemas";

/** What an open job is doing. Its status says how far it has come, and not what it waits for. */
const DOING: Readonly<Record<Activity, Look>> = {
  running: "running",
  queued: "queued",
  waiting: "waiting",
  sleeping: "pending",
  paused: "waiting",
};

export const ACTIVITIES = Object.keys(DOING) as readonly Activity[];

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
  readonly status: JobState;
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
  const isRetry = activity === "sleeping" && waitsFor(job.waiting_for, "retry");
  return {
    look: isRetry ? "retrying" : activityLook(activity),
    word: isRetry ? wordOf("retrying") : activityWord(activity),
    tip: `status ${status}, activity ${activity}`,
  };
}

/** An activity of a newer server looks pending, and is called by its name. */
export function activityLook(activity: Activity): Look {
  return DOING[activity] ?? "pending";
}

export function activityWord(activity: Activity): string {
  return DOING_WORD[activity] ?? activity;
}

/** How a step looks. A step that is parked until its next attempt is retrying. */
export function stepLook(status: StepState, waitingFor?: string | null): Look {
  if (status === "PARKED" && waitsFor(waitingFor, "retry")) return "retrying";
  return STEP[status] ?? "pending";
}

/** Whether a job in this state has ended. */
export function isOver(status: JobState): boolean {
  return ENDED.includes(jobLook(status));
}

/** Whether a step in this state has ended. */
export function isStepOver(status: StepState): boolean {
  return ENDED.includes(stepLook(status));
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
const SAID: Readonly<Partial<Record<JobState | StepState, string>>> = {
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
export function saidOf(status: JobState | StepState): string | undefined {
  return SAID[status];
}

export function color(look: Look): string {
  return `var(--st-${look})`;
}
