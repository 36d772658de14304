import { type Look, wordOf } from "../state";
import { durationOf } from "./critical";
import { lookOf } from "./look";
import type { Step } from "./store";
import type { Fan } from "./types";

/** From good to bad, so that a bar reads like a thermometer. */
export const BAR_ORDER: readonly Look[] = [
  "succeeded", "skipped", "running", "retrying", "waiting", "ready", "queued", "pending", "cancelled", "failed",
]; // biome-ignore format: one line reads as the list it is

export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`;
  const minutes = Math.floor(ms / 60_000);
  if (minutes < 60) return `${minutes} min ${Math.floor((ms % 60_000) / 1_000)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How many children are over, of how many. */
export function fanText(fan: Fan): string {
  const done = (fan.by.succeeded ?? 0) + (fan.by.skipped ?? 0) + (fan.by.failed ?? 0) + (fan.by.cancelled ?? 0);
  const failed = fan.by.failed ? ` · ${fan.by.failed} failed` : "";
  return `${done} of ${fan.total ?? "?"}${failed}`;
}

/** The second line of a card. */
export function metaText(step: Step, isPlan: boolean, now: number): string {
  if (isPlan) return step.meta;
  if (step.fan !== undefined && step.fan.total !== null) return fanText(step.fan);
  const parts = step.meta === "" ? [] : [step.meta];
  if (step.startedAt !== null) parts.push(durationText(durationOf(step, now)));
  if (step.attempt > 1) parts.push(`try ${step.attempt}`);
  return parts.length === 0 ? wordOf(step.look).toLowerCase() : parts.join(" · ");
}

/** What a screen reader adds to what a card says: the eye has it from colour and icon. */
export function stateText(step: Step): string {
  const word = wordOf(lookOf(step)).toLowerCase();
  return step.fan === undefined ? word : `fan-out, ${word}`;
}
