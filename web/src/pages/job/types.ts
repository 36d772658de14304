/** What the server says of a job, as this page reads it. */
import type { components } from "../../api/types.gen";
import type { ChildStates } from "../../graph/document";

type Schemas = components["schemas"];

export type JobDocument = Schemas["JobDocument"] & { readonly seq?: number };
export type JobAccepted = Schemas["JobAccepted"];
export type StepDocument = Schemas["StepDocument"] & { readonly parent?: number | null };
export type StepPage = { readonly items: readonly StepDocument[]; readonly next: number | null };
export type FanDocument = Schemas["FanDocument"];
export type GraphDocument = Schemas["GraphDocument"] & ChildStates & { readonly seq?: number };
export type EventDocument = Schemas["EventDocument"];
export type ReasonDocument = Schemas["ReasonDocument"];
export type Costs = Schemas["Costs"];

/** What a stream tells of an event; its payload is asked for when somebody wants it. */
export interface EventLine {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly no: number | null;
  readonly step?: string | null;
  readonly attempt: number | null;
  readonly source: string;
}

export interface JobPatch {
  readonly seq: number;
  readonly job: JobDocument | null;
  readonly steps: readonly StepDocument[];
  readonly fans: Readonly<Record<string, FanDocument>>;
  readonly events: readonly EventLine[];
}

export type Outcome = "running" | "succeeded" | "failed" | "lost" | "waiting" | "cancelled";

export interface Attempt {
  readonly no: number;
  readonly step?: string;
  readonly index?: number | null;
  readonly attempt: number;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  /** An open list: one that this page does not know is shown as its word. */
  readonly outcome: string;
  readonly worker: string | null;
  readonly error?: unknown;
}

export interface AttemptPage {
  readonly items: readonly Attempt[];
  readonly next: string | number | null;
}

export interface LogLine {
  readonly at: string;
  readonly level: string;
  readonly text: string;
  readonly attempt: number;
}

export interface StepDetail extends StepDocument {
  readonly needs: readonly string[];
  readonly idempotency_key: string | null;
  readonly attempts: readonly Attempt[];
  readonly logs: readonly LogLine[];
  readonly provider: StepWork | null;
  readonly why: ReasonDocument | null;
  readonly cost: StepCost | null;
  readonly inputs: unknown;
  /** `template`: something that it needs is not there yet. `large`: left out. */
  readonly inputs_state?: string;
}

/** What a provider does for a step, or did. */
export interface StepWork {
  readonly provider: string;
  readonly external_id: string | null;
  readonly state: string;
  readonly status: string | null;
  readonly attempt: number;
  readonly polls: number;
  readonly next_poll_at: string | null;
  readonly submitted_at: string | null;
  readonly ended_at: string | null;
}

export interface StepCost {
  /** Decimal text. */
  readonly amount: string;
  readonly tokens_in: number;
  readonly tokens_out: number;
  readonly seconds: number;
}

/** What running again would do. */
export interface RerunPlan {
  readonly run_again: readonly string[];
  readonly kept: readonly string[];
  readonly stale: readonly string[];
  /** The names of inputs that are not what they were. */
  readonly inputs_changed?: readonly string[];
  /** Of fan-outs that run again: how many children they keep. */
  readonly kept_children?: Readonly<Record<string, number>>;
}
