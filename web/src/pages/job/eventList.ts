/** Events of a job, newest first: pages from before and lines from now, each once. */
import type { EventDocument, EventLine } from "./types";

export type Line = Omit<EventLine, "step"> & { readonly payload?: unknown; readonly hasPayload?: boolean };

/** A page's event is the whole of it; a line of the stream is not, and gives way. */
export function mergedLines(pages: readonly EventDocument[], live: readonly EventLine[]): Line[] {
  const lines = new Map<number, Line>();
  for (const line of live) lines.set(line.seq, line);
  for (const { seq, at, type, no, attempt, source, payload } of pages) {
    lines.set(seq, { seq, at, type, no, attempt, source, payload, hasPayload: true });
  }
  return [...lines.values()].sort((a, b) => b.seq - a.seq);
}

export interface EventFilter {
  /** `step.failed`, or `step` for all that begin so. */
  readonly type: string;
  /** A part of the step's label. */
  readonly step: string;
}

export function filteredLines(
  lines: readonly Line[],
  filter: EventFilter,
  labelOf: (no: number) => string,
): readonly Line[] {
  const text = filter.step.trim().toLowerCase();
  if (filter.type === "" && text === "") return lines;
  return lines.filter(
    (line) =>
      (filter.type === "" || line.type === filter.type || line.type.startsWith(`${filter.type}.`)) &&
      (text === "" || (line.no !== null && labelOf(line.no).toLowerCase().includes(text))),
  );
}

/** Whether numbers are missing between two lines that stand together: a page that was not loaded lies there. */
export function gapsIn(lines: readonly Line[]): number {
  const newest = lines[0]?.seq ?? 0;
  const oldest = lines.at(-1)?.seq ?? 1;
  return Math.max(0, newest - oldest + 1 - lines.length);
}
