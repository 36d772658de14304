import { type Look, stepLook } from "../../state";
import type { UndoPlan, UndoStep } from "./types";

/** How an undo step looks; a step that no undo job has yet waits. */
export function lookOfUndo(status: UndoStep["status"]): Look {
  return status === null ? "pending" : stepLook(status);
}

/** What became of one effect, in a word. */
export function wordOfUndo(status: UndoStep["status"]): string {
  if (status === null) return "would run";
  if (status === "COMPLETED") return "undone";
  if (status === "FAILED" || status === "ABANDONED" || status === "CANCELLED") return "stands";
  return status === "RUNNING" ? "undoing" : "waits";
}

/** What became of the effects of the job, in a sentence. */
export function saidOfEffects(plan: UndoPlan): string {
  const count = plan.steps.length;
  const many = count === 1 ? "1 effect" : `${count.toLocaleString("en")} effects`;
  switch (plan.effects) {
    case "undoing": {
      const over = plan.steps.filter((step) => step.status === "COMPLETED").length;
      return `${over} of ${many} undone.`;
    }
    case "undone":
      return `${many} undone.`;
    case "failed":
      return "The undo failed. Retry the undo job to continue.";
    case "standing":
      return plan.undo_job_id === null ? `${many} stand.` : `${many} stand until a person allows the undo.`;
    default:
      return `A cancel would undo ${many}.`;
  }
}
