/** How long to wait before the next try. Half of it is chance, so that many browsers do not come back at once. */

const FIRST_MS = 500;
const MOST_MS = 5_000;
/** After a stream that was told to come back, or lived long: nothing is wrong, so soon. */
const SOON_MS = 400;

export function waitMs(failures: number, random: () => number = Math.random): number {
  if (failures === 0) return SOON_MS * (0.25 + 0.75 * random());
  const full = Math.min(MOST_MS, FIRST_MS * 2 ** Math.min(failures, 16));
  return full * (0.5 + 0.5 * random());
}

/** Seconds or a date, as `Retry-After` has it. */
export function retryAfterMs(header: string | null, nowMs: number): number | null {
  if (header === null) return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds) && seconds >= 0) return seconds * 1_000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? null : Math.max(0, date - nowMs);
}
