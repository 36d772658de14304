import type { Size, View } from "./camera";
import type { Item, Rect, Scene } from "./scene";
import type { GraphStore, Step } from "./store";
import type { Theme } from "./theme";
import type { StepNo } from "./types";

/** All that one picture is made of. */
export interface Frame {
  readonly scene: Scene;
  readonly store: GraphStore;
  readonly view: View;
  readonly size: Size;
  /** Pixels of the screen for each of the page. */
  readonly ratio: number;
  readonly theme: Theme;
  readonly shown: Rect;
  /** What belongs to the selected step, or nothing if none is selected; the rest is dimmed. */
  readonly line: ReadonlySet<StepNo> | null;
  /** Each step of the critical path with the next of it. */
  readonly critical: ReadonlyMap<StepNo, StepNo | null> | null;
  readonly selected: StepNo | null;
  /** A recipe that has not run: every step is a plan. */
  readonly isPlan: boolean;
  /** Steps that stand there as buttons already. */
  readonly covered: ReadonlySet<StepNo>;
  readonly now: number;
}

export const DIMMED = 0.22;
/** Steps that are only planned step back, so that what happens stands out. */
export const PLANNED = 0.5;

export function stepOf(frame: Frame, item: Item): Step | undefined {
  return frame.store.get(item.id);
}

export function isDimmed(frame: Frame, id: StepNo): boolean {
  return frame.line !== null && !frame.line.has(id);
}
