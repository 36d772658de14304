import type { View } from "./camera";
import type { Item, Scene } from "./scene";
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

/** What can be asked of the moving part. */
export interface Engine {
  show(scene: Scene): void;
  mark(marks: Marks): void;
  /** Steps that React has put up as buttons, so that they are not painted as well. */
  cover(ids: ReadonlySet<StepNo>): void;
  /** The next layout is because of this step: it stays where it is on the screen. */
  hold(id: StepNo): void;
  fit(): void;
  fitTo(ids: Iterable<StepNo>): void;
  zoom(factor: number, px?: number, py?: number): void;
  pan(dx: number, dy: number): void;
  centre(x: number, y: number): void;
  /** Bring a step into view, and near enough to be read if asked for. */
  reveal(id: StepNo, isRead?: boolean): void;
  itemAt(px: number, py: number): Item | undefined;
  view(): View;
  stop(): void;
}

/** The step whose button has the focus. */
export function focusedIn(layer: HTMLElement): StepNo | null {
  const step = layer.contains(document.activeElement)
    ? (document.activeElement as HTMLElement).dataset.step
    : undefined;
  return step === undefined ? null : Number(step);
}

/**
 * The steps in view, and in any place the selected step and the focused step: a removed button would lose the focus.
 */
export function buttonsOf(
  visible: readonly Item[],
  scene: Pick<Scene, "byId"> | null,
  always: readonly (StepNo | null)[],
): Item[] {
  const items = new Set(visible);
  for (const id of always) {
    const item = id === null ? undefined : scene?.byId.get(id);
    if (item !== undefined) items.add(item);
  }
  return [...items];
}
