/** Pages of steps, for what a snapshot leaves out: when children began and ended, and how often they were tried. */
import { ask } from "../../api/client";
import type { JobLive } from "./jobLive";
import type { AttemptPage, StepPage } from "./types";

const PAGE = 500;
/** So that a job of any size has an end. */
const PAGES_MAX = 400;

export interface Progress {
  readonly loaded: number;
  readonly isDone: boolean;
}

type Tell = (progress: Progress) => void;

/** All steps, or those of one name. */
export async function loadSteps(id: string, live: JobLive, name: string | null, signal: AbortSignal, tell?: Tell) {
  let after = -1;
  let loaded = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const only = name === null ? "" : `&step=${encodeURIComponent(name)}`;
    const { items, next } = await ask<StepPage>(`/jobs/${id}/steps?limit=${PAGE}&after=${after}${only}`, { signal });
    live.learn(items);
    loaded += items.length;
    tell?.({ loaded, isDone: next === null });
    if (next === null) return;
    after = next;
  }
}

export async function loadAttempts(id: string, live: JobLive, signal: AbortSignal, tell?: Tell) {
  let after = "";
  let loaded = 0;
  for (let page = 0; page < PAGES_MAX; page++) {
    const from = after === "" ? "" : `&after=${encodeURIComponent(after)}`;
    const { items, next } = await ask<AttemptPage>(`/jobs/${id}/attempts?limit=${PAGE}${from}`, { signal });
    live.attempts.merge(items);
    loaded += items.length;
    tell?.({ loaded, isDone: next === null });
    if (next === null) return;
    after = String(next);
  }
}
