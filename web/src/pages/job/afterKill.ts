/** What is to be seen after the demo's worker was killed, from what the job tells. */
import type { EventType } from "../../api/schemas";
import type { StepNo } from "../../graph/types";
import type { EventLine } from "./types";

export interface Story {
  /** `expired`: its steps were handed back, and one is queued again. `moved`: another worker runs it. */
  readonly phase: "killed" | "expired" | "moved";
  readonly no: StepNo | null;
  readonly attempt: number | null;
}

/** Said of a step without moving it. */
const NOTES: ReadonlySet<EventType> = new Set<EventType>([
  "step.progress",
  "step.log",
  "step.preview",
  "step.checkpoint",
]);

/** `since` is the last event before the kill. */
export function afterKill(lines: readonly EventLine[], since: number): Story {
  const lost = new Set<StepNo>();
  let story: Story = { phase: "killed", no: null, attempt: null };
  for (const line of lines) {
    if (line.no === null) continue;
    const isAfter = line.seq > since;
    if (line.type === "step.running") {
      if (isAfter && lost.has(line.no)) return { phase: "moved", no: line.no, attempt: line.attempt };
    } else if (line.type === "step.queued" || line.type === "step.held") {
      // A step that failed is parked before it is queued; only a step whose worker is gone is queued directly.
      if (isAfter && (line.attempt ?? 0) > 0 && !wasParked(lines, line)) {
        lost.add(line.no);
        if (story.phase === "killed") story = { phase: "expired", no: line.no, attempt: line.attempt };
      }
    }
  }
  return story;
}

/** Whether the step's own last word before this line was that it waits. */
function wasParked(lines: readonly EventLine[], line: EventLine): boolean {
  const before = lines.findLast((one) => one.no === line.no && one.seq < line.seq && !NOTES.has(one.type));
  return before?.type === "step.parked";
}
