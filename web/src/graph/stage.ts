import type { Item } from "./scene";
import type { StepNo } from "./types";

/** What the engine paints on. */
export interface Stage {
  readonly canvas: HTMLCanvasElement;
  readonly layer: HTMLElement;
  readonly minimap: HTMLCanvasElement;
}

/** What is to be a button. */
export interface Cards {
  readonly items: readonly Item[];
  /** Too small or too many to be read: the canvas paints them, and the buttons are only there for the focus. */
  readonly areGhosts: boolean;
}

/** What stands out of the graph. */
export interface Marks {
  readonly line: ReadonlySet<StepNo> | null;
  readonly critical: ReadonlyMap<StepNo, StepNo | null> | null;
  readonly selected: StepNo | null;
  readonly isPlan: boolean;
  readonly isFollowing: boolean;
}
