import type { Outcome } from "../../api/schemas";
import type { Look } from "../../state";

const SHOWN: Readonly<Record<Outcome, readonly [Look, string]>> = {
  running: ["running", "Running"],
  succeeded: ["succeeded", "Succeeded"],
  failed: ["failed", "Failed"],
  // The engine runs the step again.
  lost: ["retrying", "Worker lost"],
  waiting: ["waiting", "Waiting"],
  cancelled: ["cancelled", "Cancelled"],
};

export function outcomeLook(outcome: Outcome): Look {
  return SHOWN[outcome]?.[0] ?? "pending";
}

export function outcomeWord(outcome: Outcome): string {
  return SHOWN[outcome]?.[1] ?? outcome;
}
