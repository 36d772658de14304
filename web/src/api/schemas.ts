/** The API's documents and enums by name. All types come from the OpenAPI document: no page declares its own. */
import type { components } from "./types.gen";

export type Schemas = components["schemas"];

export type JobState = Schemas["JobState"];
export type StepState = Schemas["StepState"];
export type Activity = Schemas["Activity"];
export type EventType = Schemas["EventType"];
export type AuditEvent = Schemas["AuditEvent"];
export type NodeKind = Schemas["NodeKind"];
export type Scope = Schemas["Scope"];
export type Outcome = Schemas["AttemptDocument"]["outcome"];
export type AttentionKind = Schemas["AttentionDocument"]["kind"];
/** A word of `waiting_for`: a wait, a hold, or the budget that keeps a job waiting. */
export type WaitWord = Schemas["WaitKind"] | Schemas["HoldName"] | "budget";

/** The type check fails where a case of the API is missing. A newer server may still send one: then nothing happens. */
export function unhandled(_value: never): void {}

/** The type check fails where a case of the console's own unions is missing. */
export function missing(value: never): never {
  throw new Error(`No case for ${JSON.stringify(value)}`);
}
