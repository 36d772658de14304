/**
 * From the steps of a job to what is laid out: fan-outs as one card with a bar, or opened in place as a box with a cell
 * for each child. A box is one vertex, so 10,000 children cost the layout nothing, and two fan-outs in a row need one
 * edge and not a million.
 */
import { relationsOf } from "./relations";
import type { StepNo, Structure } from "./types";

export const CARD = { width: 176, height: 44 };
export const CELL_GAP = 8;
export const BOX_PAD = 10;
export const BOX_HEAD = 44;
/** A fan-out with more children than this is folded until it is opened. */
export const FAN_SHOWN_MAX = 12;
/** In a job with more steps than this every fan-out is. */
export const STEPS_SHOWN_MAX = 300;
/** How much work may go into joining what stands on both sides of hidden steps. */
const BRIDGE_VISITS_MAX = 2_000_000;
/** Boxes are about as wide as a screen is. */
const BOX_ASPECT = 1.6;

export interface Vertex {
  readonly id: StepNo;
  readonly width: number;
  readonly height: number;
  /** The cells of an opened fan-out, row by row. */
  readonly cells?: readonly StepNo[];
  readonly columns?: number;
}

export interface Folded {
  readonly vertices: readonly Vertex[];
  /** Pairs of indexes into `vertices`. */
  readonly pairs: Int32Array;
}

/** The fan-outs that are open at first. */
export function openAtFirst(structure: Structure): ReadonlySet<StepNo> {
  const open = new Set<StepNo>();
  if (stepCount(structure) > STEPS_SHOWN_MAX) return open;
  const { children } = relationsOf(structure);
  for (const node of structure.nodes) {
    const many = node.fan === undefined ? 0 : (node.fan.total ?? children.get(node.id)?.length ?? 0);
    if (many > 0 && many <= FAN_SHOWN_MAX) open.add(node.id);
  }
  return open;
}

export function stepCount(structure: Structure): number {
  const { children } = relationsOf(structure);
  let count = 0;
  for (const node of structure.nodes) {
    if (node.parent !== undefined) continue;
    count += node.fan === undefined ? 1 : Math.max(node.fan.total ?? 0, children.get(node.id)?.length ?? 0, 1);
  }
  return count;
}

export function fold(
  structure: Structure,
  open: ReadonlySet<StepNo>,
  isKept: ((id: StepNo) => boolean) | null = null,
): Folded {
  const relations = relationsOf(structure);
  const vertices: Vertex[] = [];
  const at = new Map<StepNo, number>();
  for (const node of structure.nodes) {
    if (node.parent !== undefined || (isKept !== null && !isKept(node.id))) continue;
    at.set(node.id, vertices.length);
    const children = open.has(node.id) ? (relations.children.get(node.id) ?? []) : [];
    const cells = isKept === null ? children : children.filter(isKept);
    vertices.push(cells.length === 0 ? { id: node.id, ...CARD } : boxOf(node.id, cells));
  }
  const pairs: number[] = [];
  if (isKept === null) {
    for (const [from, to] of structure.edges) {
      const [a, b] = [at.get(from), at.get(to)];
      if (a !== undefined && b !== undefined && a !== b) pairs.push(a, b);
    }
  } else bridge(at, relations.neededBy, pairs);
  return { vertices, pairs: Int32Array.from(pairs) };
}

function boxOf(id: StepNo, cells: readonly StepNo[]): Vertex {
  const [cellWidth, cellHeight] = [CARD.width + CELL_GAP, CARD.height + CELL_GAP];
  const columns = Math.max(1, Math.round(Math.sqrt((cells.length * cellHeight * BOX_ASPECT) / cellWidth)));
  const rows = Math.ceil(cells.length / columns);
  return {
    id,
    cells,
    columns,
    width: 2 * BOX_PAD + columns * cellWidth - CELL_GAP,
    height: BOX_HEAD + BOX_PAD + rows * cellHeight - CELL_GAP,
  };
}

/** Join kept steps that have only hidden ones between them, so that hiding never tears a graph apart. */
function bridge(
  at: ReadonlyMap<StepNo, number>,
  neededBy: ReadonlyMap<StepNo, readonly StepNo[]>,
  pairs: number[],
): void {
  let visits = 0;
  for (const [from, index] of at) {
    const seen = new Set<StepNo>(neededBy.get(from) ?? []);
    for (const next of seen) {
      if (visits++ > BRIDGE_VISITS_MAX) return;
      const other = at.get(next);
      if (other !== undefined) pairs.push(index, other);
      else for (const beyond of neededBy.get(next) ?? []) seen.add(beyond);
    }
  }
}
