import type { Counts } from "../../graph/store";

/** What ends with the job, in numbers. */
export function cancelText(counts: Counts): string {
  const waiting = (counts.waiting ?? 0) + (counts.retrying ?? 0) + (counts.queued ?? 0) + (counts.ready ?? 0);
  const said = [
    many(counts.running ?? 0, "running step", "told to stop"),
    many(waiting, "waiting step", "dropped"),
    many(counts.pending ?? 0, "step", "never started"),
  ].filter((part) => part !== "");
  return said.length === 0 ? "The job ends now." : `The job ends now: ${said.join(", ")}.`;
}

function many(count: number, noun: string, what: string): string {
  if (count === 0) return "";
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? " is" : "s are"} ${what}`;
}
