/** One act for many jobs: all that a filter finds, or the chosen jobs. */
import { ask, Problem, problemOf } from "../../api/client";
import type { components } from "../../api/types.gen";
import type { JobDocument } from "../../live";
import { isOver } from "../../state";
import type { Wanted } from "./filter";

export type Action = "cancel" | "retry";
export type BulkDone = components["schemas"]["BulkDone"];

export interface Progress {
  readonly done: number;
  readonly refused: number;
  readonly of: number;
}

export interface Result extends Progress {
  /** Why jobs were refused, and how many of each. */
  readonly codes: Readonly<Record<string, number>>;
  /** What stopped it before its end. */
  readonly problem: Problem | null;
}

/** The server takes so many at a time, in one audit row. */
const CHUNK = 500;
const AT_ONCE = 4;

type BulkFilter = components["schemas"]["BulkFilter"];

/** The filter of an act: as it is listed, without jobs that were made after the count was shown. */
export function bulkFilter(wanted: Wanted, nowMs: number): BulkFilter {
  const { filter } = wanted;
  const until = Math.min(wanted.until ?? Number.POSITIVE_INFINITY, nowMs);
  return {
    status: [...filter.status],
    activity: [...filter.activity],
    event: filter.event || null,
    label: [...filter.label],
    recipe: filter.recipe || null,
    failed_step: filter.failed_step || null,
    since: wanted.since === null ? null : new Date(wanted.since).toISOString(),
    until: new Date(until).toISOString(),
    caller: wanted.caller,
  };
}

export function countBulk(action: Action, filter: BulkFilter): Promise<BulkDone> {
  return ask<BulkDone>("/jobs/bulk", { method: "POST", body: { action, filter, dry_run: true } });
}

/**
 * Act on `count` jobs, chunk by chunk. The first must find as many as were counted, else nothing is done and it throws; what
 * goes wrong later is told with what was done until then.
 */
export async function runBulk(
  action: Action,
  filter: BulkFilter,
  count: number,
  reason: string,
  onProgress: (progress: Progress) => void,
): Promise<Result> {
  const told = tally(count);
  while (told.seen() < count) {
    const limit = Math.min(CHUNK, count - told.seen());
    const expect = told.seen() === 0 ? count : null;
    const body = { action, filter, dry_run: false, expect, reason, limit };
    try {
      const { done, refused } = await ask<BulkDone>("/jobs/bulk", { method: "POST", body });
      if (done.length + refused.length === 0) break;
      told.add(done.length, refused.map((one) => one.code)); // biome-ignore format: one thought
      // What is refused is found again: going on would ask for the same for ever.
      if (done.length === 0) break;
    } catch (error) {
      if (told.seen() === 0) throw error;
      return told.result(problemOf(error));
    }
    onProgress(told.progress());
  }
  return told.result(null);
}

/** Whether an act means something to a job as it stands. */
export function canBe(action: Action, job: JobDocument): boolean {
  return action === "cancel" ? !isOver(job.status) : isOver(job.status) && job.status !== "COMPLETED";
}

/** Act on these jobs, a few at once. */
export async function runEach(
  action: Action,
  ids: readonly string[],
  reason: string,
  onProgress: (progress: Progress) => void,
): Promise<Result> {
  const told = tally(ids.length);
  const queue = [...ids];
  const worker = async (): Promise<void> => {
    for (let id = queue.shift(); id !== undefined; id = queue.shift()) {
      try {
        await actOn(action, id, reason);
        told.add(1, []);
      } catch (error) {
        told.add(0, [problemOf(error).body.code]);
      }
      onProgress(told.progress());
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return told.result(null);
}

export function actOn(action: Action, id: string, reason: string): Promise<JobDocument> {
  const body = action === "cancel" ? { reason } : {};
  return ask<JobDocument>(`/jobs/${id}/${action}`, { method: "POST", body });
}

function tally(of: number) {
  let done = 0;
  let refused = 0;
  const codes: Record<string, number> = {};
  return {
    seen: () => done + refused,
    add: (more: number, refusals: readonly string[]) => {
      done += more;
      refused += refusals.length;
      for (const code of refusals) codes[code] = (codes[code] ?? 0) + 1;
    },
    progress: (): Progress => ({ done, refused, of }),
    result: (problem: Problem | null): Result => ({ done, refused, of, codes, problem }),
  };
}

/** Whether the matching jobs changed between the count and the act. */
export function isCountChanged(error: unknown): boolean {
  return error instanceof Problem && error.body.code === "count_changed";
}
