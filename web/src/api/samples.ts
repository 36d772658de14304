/** For tests: whole documents, with the values that a test cares about. */
import type { Schemas } from "./schemas";

const AT = "2026-11-16T00:00:00Z";

export function sampleJob(more: Partial<Schemas["JobDocument"]> = {}): Schemas["JobDocument"] {
  return {
    ...{ job_id: "j", recipe: "film", recipe_version: 1, plan: "p", status: "PROCESSING", is_paused: false, seq: 1 },
    ...{ caller: "ada", priority: 0, labels: {}, idempotency_key: null, correlation_id: null, trace_id: "" },
    ...{ progress_pct: null, progress_message: null, steps_total: 1, steps_open: 1, steps_failed: 0, links: {} },
    ...{
      failed_step: null,
      error: null,
      parent_job: null,
      retry_of: null,
      effects: "none",
      undo_job_id: null,
      created_at: AT,
      started_at: null,
    },
    ...{ finished_at: null, updated_at: AT, stuck_for: null, deadline_at: null, expires_at: null, deleted_at: null },
    ...more,
  };
}

export function sampleStep(
  no: number,
  step: string,
  more: Partial<Schemas["StepDocument"]> = {},
): Schemas["StepDocument"] {
  return {
    ...{ no, step, index: null, parent: null, kind: "task", run: step, queue: "main", status: "BLOCKED", attempt: 0 },
    ...{ failures: 0, losses: 0, worker: null, waiting_for: null, wake_at: null, progress: null, error: null },
    ...{ started_at: null, finished_at: null, links: {} },
    ...more,
  };
}

export function sampleNode(
  no: number,
  step: string,
  more: Partial<Schemas["NodeDocument"]> = {},
): Schemas["NodeDocument"] {
  return {
    ...{ no, step, kind: "task", run: step, queue: "main", needs: [], status: "BLOCKED", attempt: 0, failures: 0 },
    ...{ losses: 0, started_at: null, finished_at: null, waiting_for: null, wake_at: null, progress: null },
    ...{ error: null, fan: null, complete: false, running: false, failed: false, seconds: null },
    ...more,
  };
}

export function sampleGraph(more: Partial<Schemas["GraphDocument"]> = {}): Schemas["GraphDocument"] {
  return {
    ...{ job_id: "j", seq: 1, status: "PROCESSING", workflow_status: null, is_paused: false, nodes: [], edges: [] },
    ...{ counts: {}, incoming: {}, ready: [], pending_operations: 0, completed_operations: 0, waiting_for: [] },
    ...{ results: null, statuses: null, children: null },
    ...more,
  };
}

export function sampleLine(seq: number, more: Partial<Schemas["EventLine"]> = {}): Schemas["EventLine"] {
  return { seq, at: AT, type: "step.running", no: null, step: null, attempt: 1, source: "w", ...more };
}

export function sampleEvent(seq: number, more: Partial<Schemas["EventDocument"]> = {}): Schemas["EventDocument"] {
  return {
    ...{ job_id: "j", seq, at: AT, type: "step.running", no: 1, attempt: 1, source: "w" },
    ...{ payload: null, correlation_id: null, idempotency_key: "k" },
    ...more,
  };
}

/** The lines with these numbers. */
export function sampleLines(from: number, to: number): Schemas["EventLine"][] {
  return Array.from({ length: to - from + 1 }, (_, i) => sampleLine(from + i));
}
