/** What the server says of a job, as this page reads it. */
import type { Schemas } from "../../api/schemas";

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
export type UndoPlan = Schemas["UndoDocument"];
export type UndoStep = Schemas["UndoStepDocument"];

/** An attempt. The stream's events tell less of it than the API's page. */
export type Attempt = Pick<Schemas["AttemptDocument"], "no" | "attempt" | "outcome" | "worker" | "started_at"> &
  Partial<Pick<Schemas["AttemptDocument"], "step" | "index" | "error">> & { readonly finished_at: string | null };

/** An event as the stream tells it, without its payload. */
export type EventLine = Schemas["EventLine"];
export type JobPatch = Schemas["JobPatch"];
