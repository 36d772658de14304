/** The part of a job's time that is looked at, and the marks under it. All times are milliseconds. */

export interface Span {
  readonly from: number;
  readonly to: number;
}

const SPAN_MIN = 10;
const MARK_PX = 90;
const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** What people divide time by. */
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500,
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
  MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE,
  HOUR, 2 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY,
]; // biome-ignore format: a table

/** All of the job, with a little room at the end while it goes on. */
export function wholeOf(began: number, ended: number | null, now: number): Span {
  const to = Math.max(ended ?? now, began + SPAN_MIN);
  return { from: began, to: to + (to - began) * (ended === null ? 0.04 : 0.01) };
}

/** Zoom by a factor (below 1: nearer); what is at `at` stays where it is. Never beyond the whole. */
export function zoomed(span: Span, at: number, factor: number, whole: Span): Span {
  const wide = Math.min(whole.to - whole.from, Math.max(SPAN_MIN, (span.to - span.from) * factor));
  const part = (at - span.from) / Math.max(1, span.to - span.from);
  return kept({ from: at - part * wide, to: at + (1 - part) * wide }, whole);
}

export function panned(span: Span, by: number, whole: Span): Span {
  return kept({ from: span.from + by, to: span.to + by }, whole);
}

/** The same width, within the whole. */
function kept(span: Span, whole: Span): Span {
  const wide = span.to - span.from;
  const from = Math.max(whole.from, Math.min(span.from, whole.to - wide));
  return { from, to: from + wide };
}

export interface Mark {
  readonly at: number;
  readonly label: string;
}

/** Marks at round times since the beginning, as many as there is room for. */
export function marksOf(span: Span, began: number, width: number): Mark[] {
  const wide = span.to - span.from;
  if (wide <= 0 || width <= 0) return [];
  const least = (wide * MARK_PX) / width;
  const step = STEPS.find((one) => one >= least) ?? Math.ceil(least / DAY) * DAY;
  const marks: Mark[] = [];
  for (let n = Math.ceil((span.from - began) / step); began + n * step <= span.to; n++) {
    marks.push({ at: began + n * step, label: sinceText(n * step, step) });
  }
  return marks;
}

/** Time since the beginning, no finer than the marks are apart. */
export function sinceText(ms: number, step: number): string {
  if (ms === 0) return "0";
  if (step < SECOND) {
    if (ms < SECOND) return `${ms} ms`;
    return `${(ms / SECOND).toFixed(step >= 100 ? 1 : step >= 10 ? 2 : 3)} s`;
  }
  const parts: [number, string][] = [
    [Math.floor(ms / DAY), "d"],
    [Math.floor((ms % DAY) / HOUR), "h"],
    [Math.floor((ms % HOUR) / MINUTE), "min"],
    [Math.floor((ms % MINUTE) / SECOND), "s"],
  ];
  return parts
    .filter(([many]) => many > 0)
    .slice(0, 2)
    .map(([many, unit]) => `${many} ${unit}`)
    .join(" ");
}
