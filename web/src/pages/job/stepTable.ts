/** Which steps a table shows and in which order. */

import { durationOf } from "../../graph/critical";
import { lookOf } from "../../graph/look";
import type { GraphStore, Step } from "../../graph/store";
import type { StepNo, Structure } from "../../graph/types";
import { LOOKS, type Look } from "../../state";

export type Column = "step" | "state" | "attempt" | "started" | "took";

export interface Wanted {
  readonly text: string;
  readonly look: Look | null;
  /** A column, with a dash before it for the other way; empty is the order of the recipe. */
  readonly sort: string;
}

/** Steps that need attention come first. */
const URGENT: readonly Look[] = ["failed", "retrying", "waiting", "running", "ready", "queued", "pending", "cancelled", "skipped", "succeeded"]; // biome-ignore format: a list

export function tableOf(structure: Structure, store: GraphStore, wanted: Wanted, now: number): StepNo[] {
  const words = wanted.text.toLowerCase().split(/\s+/).filter(Boolean);
  const kept: Step[] = [];
  for (const node of structure.nodes) {
    const step = store.get(node.id) ?? node;
    if (wanted.look !== null && lookOf(step) !== wanted.look) continue;
    const said = `${step.label} ${step.kind} ${step.meta}`.toLowerCase();
    if (words.every((word) => said.includes(word))) kept.push(step);
  }
  const isBack = wanted.sort.startsWith("-");
  const column = (isBack ? wanted.sort.slice(1) : wanted.sort) as Column | "";
  const key = column === "" ? undefined : KEYS[column];
  if (key === undefined) return inOrder(kept).map((step) => step.id);
  const keyed = kept.map((step) => [key(step, now), step] as const);
  const sign = isBack ? -1 : 1;
  return keyed.sort(([a, one], [b, other]) => sign * compare(a, b) || one.id - other.id).map(([, step]) => step.id);
}

const KEYS: Readonly<Record<Column, (step: Step, now: number) => string | number>> = {
  step: (step) => step.label,
  state: (step) => URGENT.indexOf(lookOf(step)),
  attempt: (step) => step.attempt,
  started: (step) => step.startedAt ?? Number.MAX_SAFE_INTEGER,
  took: (step, now) => durationOf(step, now),
};

/** `draw #2` before `draw #10`. */
const NAMES = new Intl.Collator("en", { numeric: true });

function compare(a: string | number, b: string | number): number {
  return typeof a === "string" && typeof b === "string" ? NAMES.compare(a, b) : (a as number) - (b as number);
}

/** Children under the fan-out that they belong to. */
function inOrder(steps: readonly Step[]): Step[] {
  return [...steps].sort((a, b) => (a.parent ?? a.id) - (b.parent ?? b.id) || Number(a.parent !== undefined) - Number(b.parent !== undefined) || a.id - b.id); // biome-ignore format: one thought
}

export function lookNamed(text: string): Look | null {
  return LOOKS.find((look) => look === text) ?? null;
}
