/** The steps of a job over time: each row is a step, with every attempt as a segment and the waiting in between. */
import type { Outcome } from "../../api/schemas";
import { relationsOf } from "../../graph/relations";
import type { GraphStore, Step } from "../../graph/store";
import type { StepNo, Structure } from "../../graph/types";
import type { Look } from "../../state";
import type { AttemptLog } from "./attemptLog";
import { outcomeLook } from "./outcome";

export interface Segment {
  /** `queue`: could have begun. `wait`: for a retry, a person, work elsewhere. `run`: an attempt. `span`: of children. */
  readonly kind: "queue" | "wait" | "run" | "span";
  readonly look: Look;
  readonly from: number;
  /** Still going on when null. */
  readonly to: number | null;
  readonly attempt?: number;
  readonly worker?: string | null;
  readonly outcome?: Outcome;
}

export interface Row {
  readonly id: StepNo;
  readonly label: string;
  readonly look: Look;
  readonly depth: 0 | 1;
  /** For a fan-out with children to show. */
  readonly isOpen?: boolean;
  readonly children?: number;
  readonly segments: readonly Segment[];
}

/** A shorter gap is the engine's own time, and is not drawn. */
const GAP_MS = 20;
const OVER: readonly Look[] = ["succeeded", "failed", "cancelled", "skipped"];

export interface Told {
  readonly structure: Structure;
  readonly store: GraphStore;
  readonly log: AttemptLog;
  readonly open: ReadonlySet<StepNo>;
  /** When the first steps could have begun. */
  readonly began: number;
}

/** Rows in the order in which they began; what has not begun comes last, in the order of the recipe. */
export function rowsOf(told: Told): Row[] {
  const { structure, store } = told;
  const relations = relationsOf(structure);
  const rows: Row[] = [];
  const top = structure.nodes.filter((node) => node.parent === undefined);
  const made = top.map((node, at) => {
    const step = store.get(node.id) ?? node;
    const children = relations.children.get(node.id) ?? [];
    const segments = step.fan === undefined ? segmentsOf(step, told) : spanOf(children, told);
    return { row: { id: node.id, label: node.label, look: step.look, depth: 0, segments } as Row, children, at };
  });
  made.sort((a, b) => startOf(a.row) - startOf(b.row) || a.at - b.at);
  for (const { row, children } of made) {
    if (children.length === 0) {
      rows.push(row);
      continue;
    }
    const isOpen = told.open.has(row.id);
    rows.push({ ...row, isOpen, children: children.length });
    if (isOpen) rows.push(...childRows(children, told));
  }
  return rows;
}

function childRows(children: readonly StepNo[], told: Told): Row[] {
  const rows: Row[] = [];
  for (const id of children) {
    const step = told.store.get(id);
    if (step !== undefined) {
      rows.push({ id, label: step.label, look: step.look, depth: 1, segments: segmentsOf(step, told) });
    }
  }
  return rows.sort((a, b) => startOf(a) - startOf(b) || a.id - b.id);
}

export function segmentsOf(step: Step, told: Told): Segment[] {
  const runs: Segment[] = told.log.of(step.id).map((attempt) => ({
    // A step that waits for an event, a timer or a child job runs nothing, however it ends.
    kind: attempt.outcome === "waiting" || step.kind !== "task" ? "wait" : "run",
    look: outcomeLook(attempt.outcome),
    from: Date.parse(attempt.started_at),
    to: attempt.finished_at === null ? null : Date.parse(attempt.finished_at),
    attempt: attempt.attempt,
    worker: attempt.worker,
    outcome: attempt.outcome,
  }));
  // Until its attempts are loaded, the last one is known from the step itself.
  if (runs.length === 0 && step.startedAt !== null) {
    runs.push({ kind: "run", look: step.look, from: step.startedAt, to: step.finishedAt, attempt: step.attempt });
  }
  const ready = readyAt(step, told);
  const segments: Segment[] = [];
  let till = ready;
  for (const run of runs) {
    if (till !== null && run.from - till > GAP_MS) {
      // After a failure the step waits for its next attempt; otherwise it waits for a free worker.
      const isWait = segments.at(-1)?.outcome === "failed";
      segments.push({
        kind: isWait ? "wait" : "queue",
        look: isWait ? "retrying" : "queued",
        from: till,
        to: run.from,
      });
    }
    segments.push(run);
    till = run.to;
  }
  const isOpen = runs.at(-1)?.to === null;
  if (isOpen || till === null || step.look === "pending" || step.look === "skipped") return segments;
  // After the last attempt, or without any, the step waits, or did until it ended.
  if (!OVER.includes(step.look)) {
    const isQueued = step.look === "queued" || step.look === "ready";
    segments.push({ kind: isQueued ? "queue" : "wait", look: step.look, from: till, to: null });
  } else if (step.finishedAt !== null && step.finishedAt - till > GAP_MS) {
    segments.push({ kind: "wait", look: "waiting", from: till, to: step.finishedAt });
  }
  return segments;
}

/** A fan-out does nothing itself: from its first child to its last. */
function spanOf(children: readonly StepNo[], told: Told): Segment[] {
  let [from, to]: [number, number | null] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let look: Look = "succeeded";
  for (const id of children) {
    const step = told.store.get(id);
    if (step === undefined) continue;
    const first = told.log.of(id)[0]?.started_at;
    const start = first == null ? step.startedAt : Date.parse(first);
    if (start === null) continue;
    from = Math.min(from, start);
    const last = told.log.of(id).at(-1)?.finished_at;
    const end = step.finishedAt ?? (last == null ? start : Date.parse(last));
    if (!OVER.includes(step.look)) to = null;
    else if (to !== null) to = Math.max(to, end);
    if (step.look === "failed") look = "failed";
    else if (look !== "failed" && !OVER.includes(step.look)) look = "running";
  }
  return from === Number.POSITIVE_INFINITY ? [] : [{ kind: "span", look, from, to }];
}

/** When all that a step needs was done; null while it is not. */
function readyAt(step: Step, told: Told): number | null {
  const { needs } = relationsOf(told.structure);
  let ready = told.began;
  for (const id of needs.get(step.parent ?? step.id) ?? []) {
    const need = told.store.get(id);
    // Skipped steps have no time of their own.
    if (need?.look === "skipped") continue;
    if (need?.finishedAt == null) return null;
    ready = Math.max(ready, need.finishedAt);
  }
  return ready;
}

/** Standing in a queue is no beginning, unless there is nothing else yet. */
function startOf(row: Row): number {
  const first = row.segments.find((segment) => segment.kind !== "queue") ?? row.segments[0];
  return first?.from ?? Number.MAX_SAFE_INTEGER;
}
