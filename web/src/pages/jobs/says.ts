/** What a row says of a job in words. */
import type { JobDocument } from "../../live";
import { isOver, saidOf } from "../../state";

/** What the pill says where the look's own word says too little. */
export function wordFor(job: JobDocument): string | undefined {
  return job.is_paused && !isOver(job.status) ? "Paused" : saidOf(job.status);
}

export interface Note {
  readonly text: string;
  readonly isError: boolean;
}

/** Why it failed, else what it says of its progress. */
export function noteOf(job: JobDocument): Note | null {
  const fault = job.error as { message?: unknown; code?: unknown } | null;
  if (fault !== null && typeof fault === "object") {
    const message =
      typeof fault.message === "string" && fault.message !== "" ? fault.message : String(fault.code ?? "");
    const where = job.failed_step === null ? "" : `${job.failed_step}: `;
    // A cancelled job says why it was cancelled, which is nothing gone wrong.
    return { text: oneLine(where + message), isError: job.status !== "CANCELLED" };
  }
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

export function shortId(id: string): string {
  return `${id.slice(0, 8)}…${id.slice(-4)}`;
}
