import type { NodeKind } from "../api/schemas";
import type { Look } from "../state";

/** A step is known by its number in the job. */
export type StepNo = number;

/** How many children a fan-out has in each state. */
export interface Fan {
  /** `null` until the step that it spreads over has said how many there are. */
  readonly total: number | null;
  readonly by: Readonly<Partial<Record<Look, number>>>;
}

export interface GraphNode {
  readonly id: StepNo;
  /** The step's name in the recipe. */
  readonly name: string;
  /** What the card says; for a child of a fan-out, which one it is. */
  readonly label: string;
  readonly kind: NodeKind;
  readonly look: Look;
  /** The small second line: a queue, a worker, a reason to wait. */
  readonly meta: string;
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  readonly fan?: Fan;
  /** The fan-out that this step is a child of. Children have no edges: their fan-out has them. */
  readonly parent?: StepNo;
}

/** From the step that is needed to the step that needs it. */
export type Edge = readonly [StepNo, StepNo];

/**
 * What is drawn. A new object means a new layout, so make one only when steps or edges were added, or a fan-out has learnt
 * how many children it has; all other changes go through the store.
 */
export interface Structure {
  readonly nodes: readonly GraphNode[];
  readonly edges: readonly Edge[];
}

/** What may change of a step while it is looked at. */
export interface StepPatch {
  readonly id: StepNo;
  readonly look?: Look;
  readonly meta?: string;
  readonly attempt?: number;
  readonly startedAt?: number | null;
  readonly finishedAt?: number | null;
  readonly fan?: Fan;
  /** Lets the patch of a child that was never loaded count for its fan-out. */
  readonly parent?: StepNo;
}

export type Direction = "right" | "down";
