/** What a row says of a job in words. */
import type { JobDocument } from "../../live";
import { waitText } from "../../waitText";

export interface Note {
  readonly text: string;
  readonly isError: boolean;
}

/** Why it failed, else what it waits for, else what it says of its progress. */
export function noteOf(job: JobDocument): Note | null {
  const fault = job.error as { message?: unknown; code?: unknown } | null;
  if (fault !== null && typeof fault === "object") {
    const message =
      typeof fault.message === "string" && fault.message !== "" ? fault.message : String(fault.code ?? "");
    const where = job.failed_step === null ? "" : `${job.failed_step}: `;
    // A cancelled job says why it was cancelled, which is nothing gone wrong.
    return { text: oneLine(where + message), isError: job.status !== "CANCELLED" };
  }
  // What a job said while it ran is no longer true while it waits.
  if (job.waiting_for != null && job.activity !== "running") return { text: waitText(job.waiting_for), isError: false };
  return job.progress_message === null ? null : { text: oneLine(job.progress_message), isError: false };
}

/** A row has one line, and an error may have thousands. */
function oneLine(text: string): string {
  return text.slice(0, 300).replaceAll(/\s+/g, " ");
}

export interface Done {
  readonly done: number;
  readonly of: number;
  /** 0 to 1. */
  readonly part: number;
}

/** How far a job is: in steps, or as it says itself where that is further. */
export function doneOf(job: JobDocument): Done {
  const of = Math.max(job.steps_total, 0);
  const done = Math.min(Math.max(of - job.steps_open, 0), of);
  const part = job.status === "COMPLETED" ? 1 : of === 0 ? 0 : done / of;
  return { done, of, part };
}
