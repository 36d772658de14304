/** Every attempt that is known, from pages of the API and from later events: the more complete source wins. */
import type { Outcome, StepState } from "../../api/schemas";
import type { StepNo } from "../../graph/types";
import type { Look } from "../../state";
import type { Attempt, EventLine } from "./types";

export interface AttemptLog {
  /** In order; the same array until one of them changes. */
  of(no: StepNo): readonly Attempt[];
  merge(attempts: readonly Attempt[]): void;
  /** An event, how its step looks after it, and who runs it. */
  hear(line: EventLine, look: Look | undefined, worker?: string | null): void;
  version(): number;
}

type Move = `step.${Lowercase<StepState>}`;

/** How an attempt ended, by the event that ended it; null: the event ends no attempt. */
const ENDED: Readonly<Record<Move, Outcome | null>> = {
  "step.blocked": null,
  "step.ready": null,
  "step.running": null,
  "step.skipped": null,
  // `hear` tells a retry from another wait.
  "step.parked": null,
  "step.completed": "succeeded",
  "step.failed": "failed",
  "step.denied": "failed",
  "step.quarantined": "failed",
  "step.cancelled": "cancelled",
  "step.abandoned": "cancelled",
  // The step is queued again without a report of its own: its worker is gone.
  "step.queued": "lost",
  "step.held": "lost",
};

export function createAttemptLog(): AttemptLog {
  const log = new Map<StepNo, readonly Attempt[]>();
  let version = 0;

  const put = (attempt: Attempt): void => {
    const before = log.get(attempt.no) ?? [];
    const others = before.filter((one) => one.attempt !== attempt.attempt);
    log.set(
      attempt.no,
      [...others, attempt].sort((a, b) => a.attempt - b.attempt),
    );
    version++;
  };
  const find = (no: StepNo, attempt: number): Attempt | undefined =>
    log.get(no)?.find((one) => one.attempt === attempt);
  return {
    of: (no) => log.get(no) ?? NONE,
    merge: (attempts) => {
      for (const attempt of attempts) {
        const has = find(attempt.no, attempt.attempt);
        // A page may be older than what was heard: an end is never taken back.
        if (has === undefined || has.finished_at === null || attempt.finished_at !== null) put(attempt);
      }
    },
    hear: (line, look, worker = null) => {
      if (line.no === null || line.attempt === null) return;
      const has = find(line.no, line.attempt);
      if (line.type === "step.running") {
        if (has === undefined) {
          const open = { started_at: line.at, finished_at: null, outcome: "running" as const };
          put({ no: line.no, attempt: line.attempt, ...open, worker });
        }
        return;
      }
      const isParked = line.type === "step.parked";
      const outcome = isParked ? (look === "retrying" ? "failed" : "waiting") : (ENDED[line.type as Move] ?? null);
      if (outcome === null || has === undefined) return;
      // An attempt that waits for a provider or an event ends with the answer.
      if (has.finished_at === null || has.outcome === "waiting") put({ ...has, finished_at: line.at, outcome });
    },
    version: () => version,
  };
}

const NONE: readonly Attempt[] = [];
