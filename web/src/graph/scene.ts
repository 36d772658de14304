/** What can be seen and pointed at: every card and cell with its place, and a grid to find those in a rectangle. */
import { BOX_HEAD, BOX_PAD, CARD, CELL_GAP, type Folded } from "./fold";
import type { Layout } from "./layered";
import type { Direction, StepNo } from "./types";

/** `box` is an opened fan-out: a frame around its cells, with a head that stands for the fan-out itself. */
export type Role = "card" | "box" | "cell";

export interface Item {
  readonly id: StepNo;
  readonly role: Role;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Rect {
  readonly x0: number;
  readonly y0: number;
  readonly x1: number;
  readonly y1: number;
}

export interface Scene {
  readonly items: readonly Item[];
  readonly byId: ReadonlyMap<StepNo, Item>;
  /** Pairs of indexes into `items`. */
  readonly pairs: Int32Array;
  readonly layout: Layout;
  readonly width: number;
  readonly height: number;
  readonly direction: Direction;
  /** The items that touch a rectangle, boxes before the cells in them. */
  within(rect: Rect): Item[];
  /** The uppermost item at a point; a box only by its head. */
  at(x: number, y: number): Item | undefined;
}

const TILE = 512;
const STRIDE = 1 << 20;

export function sceneOf(folded: Folded, layout: Layout): Scene {
  const items: Item[] = [];
  const cells: Item[] = [];
  folded.vertices.forEach((vertex, i) => {
    const [x, y] = [layout.x[i] as number, layout.y[i] as number];
    const role = vertex.cells === undefined ? "card" : "box";
    items.push({ id: vertex.id, role, x, y, width: vertex.width, height: vertex.height });
    const columns = vertex.columns ?? 1;
    vertex.cells?.forEach((id, n) => {
      cells.push({
        id,
        role: "cell",
        x: x + BOX_PAD + (n % columns) * (CARD.width + CELL_GAP),
        y: y + BOX_HEAD + Math.floor(n / columns) * (CARD.height + CELL_GAP),
        ...CARD,
      });
    });
  });
  // Cells come after all vertices, so that the pairs of the layout count items too.
  items.push(...cells);
  const tiles = tilesOf(items);
  const within = (rect: Rect): Item[] => touching(items, tiles, rect);
  return {
    items,
    byId: new Map(items.map((item) => [item.id, item])),
    pairs: folded.pairs,
    layout,
    width: layout.width,
    height: layout.height,
    direction: layout.direction,
    within,
    at: (x, y) =>
      within({ x0: x, y0: y, x1: x, y1: y }).findLast((item) => item.role !== "box" || y <= item.y + BOX_HEAD),
  };
}

function tilesOf(items: readonly Item[]): Map<number, number[]> {
  const tiles = new Map<number, number[]>();
  items.forEach((item, i) => {
    for (let ty = tile(item.y); ty <= tile(item.y + item.height); ty++) {
      for (let tx = tile(item.x); tx <= tile(item.x + item.width); tx++) {
        const list = tiles.get(ty * STRIDE + tx);
        if (list === undefined) tiles.set(ty * STRIDE + tx, [i]);
        else list.push(i);
      }
    }
  });
  return tiles;
}

function touching(items: readonly Item[], tiles: ReadonlyMap<number, number[]>, rect: Rect): Item[] {
  const touches = (item: Item): boolean =>
    item.x <= rect.x1 && item.x + item.width >= rect.x0 && item.y <= rect.y1 && item.y + item.height >= rect.y0;
  const [fromX, toX] = [Math.max(0, tile(rect.x0)), tile(rect.x1)];
  const [fromY, toY] = [Math.max(0, tile(rect.y0)), tile(rect.y1)];
  // Looking at more tiles than there are: every item is quicker than every tile.
  if ((toX - fromX + 1) * (toY - fromY + 1) > tiles.size) return items.filter(touches);
  const found = new Set<number>();
  for (let ty = fromY; ty <= toY; ty++) {
    for (let tx = fromX; tx <= toX; tx++) {
      for (const i of tiles.get(ty * STRIDE + tx) ?? []) if (touches(items[i] as Item)) found.add(i);
    }
  }
  return [...found].sort((a, b) => a - b).map((i) => items[i] as Item);
}

function tile(at: number): number {
  return Math.floor(at / TILE);
}
