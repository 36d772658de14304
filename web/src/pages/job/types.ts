/** What the server says of a job, as this page reads it. */
import type { components } from "../../api/types.gen";

type Schemas = components["schemas"];

export type JobDocument = Schemas["JobDocument"];
export type JobAccepted = Schemas["JobAccepted"];
export type StepDocument = Schemas["StepDocument"];
export type StepPage = Schemas["StepPage"];
export type FanDocument = Schemas["FanDocument"];
export type GraphDocument = Schemas["GraphDocument"];
export type EventDocument = Schemas["EventDocument"];
export type EventPage = Schemas["EventPage"];
export type ReasonDocument = Schemas["ReasonDocument"];
export type Costs = Schemas["Costs"];
export type AttemptPage = Schemas["AttemptPage"];
export type StepDetail = Schemas["StepDetailDocument"];
export type StepWork = Schemas["StepWorkDocument"];
export type StepCost = Schemas["StepCostDocument"];
export type LogLine = Schemas["LogDocument"];
export type RerunPlan = Schemas["RerunPlan"];

/** An attempt; one that was only heard of has less to tell. */
export type Attempt = Pick<Schemas["AttemptDocument"], "no" | "attempt" | "outcome" | "worker" | "started_at"> &
  Partial<Pick<Schemas["AttemptDocument"], "step" | "index" | "error">> & { readonly finished_at: string | null };

/** What a stream tells of an event; its payload is asked for when somebody wants it. */
export interface EventLine {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly no: number | null;
  readonly step?: string | null;
  readonly attempt: number | null;
  readonly source: string | null;
}

export interface JobPatch {
  readonly seq: number;
  readonly job: JobDocument | null;
  readonly steps: readonly StepDocument[];
  readonly fans: Readonly<Record<string, FanDocument>>;
  readonly events: readonly EventLine[];
}
