import type { Look } from "../state";
import type { Step } from "./store";

const OVER: readonly Look[] = ["succeeded", "failed", "cancelled", "skipped"];

/** How a step looks. A fan-out that is not over looks like what its children do: it does nothing itself. */
export function lookOf(step: Step): Look {
  if (step.fan === undefined || OVER.includes(step.look)) return step.look;
  const by = step.fan.by;
  if ((by.running ?? 0) > 0) return "running";
  if ((by.retrying ?? 0) > 0) return "retrying";
  if ((by.waiting ?? 0) > 0) return "waiting";
  return OVER.some((look) => (by[look] ?? 0) > 0) ? "running" : step.look;
}

export function isRunning(step: Step | undefined): boolean {
  if (step === undefined) return false;
  const look = lookOf(step);
  return look === "running" || look === "retrying";
}
