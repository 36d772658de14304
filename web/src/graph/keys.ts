/** What the keys do: commands, and where the arrows lead. */
import { BOX_HEAD } from "./fold";
import { relationsOf } from "./relations";
import type { Item, Scene } from "./scene";
import type { StepNo, Structure } from "./types";

export type Command =
  | "fit"
  | "follow"
  | "failed"
  | "unfinished"
  | "find"
  | "direction"
  | "minimap"
  | "critical"
  | "larger"
  | "smaller";

export const COMMAND_OF: Readonly<Record<string, Command>> = {
  f: "fit",
  l: "follow",
  e: "failed",
  h: "unfinished",
  "/": "find",
  t: "direction",
  m: "minimap",
  c: "critical",
  "+": "larger",
  "=": "larger",
  "-": "smaller",
};

export type Arrow = "ArrowRight" | "ArrowLeft" | "ArrowDown" | "ArrowUp";

const WAY: Readonly<Record<Arrow, readonly [number, number]>> = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};

export function isArrow(key: string): key is Arrow {
  return key in WAY;
}

/**
 * The step an arrow leads to. Along the graph it follows the edges; across it, and where no edge leads on, it takes the
 * nearest step on that side. In an opened fan-out it walks the cells first, and leaves by the fan-out's own edges.
 */
export function neighbour(scene: Scene, structure: Structure, id: StepNo, arrow: Arrow): StepNo | undefined {
  const item = scene.byId.get(id);
  if (item === undefined) return undefined;
  const relations = relationsOf(structure);
  const [dx, dy] = WAY[arrow];
  const near = (candidates: Iterable<Item>): StepNo | undefined => nearest(item, candidates, dx, dy)?.id;
  const shown = (ids: readonly StepNo[]): Item[] =>
    ids.map((other) => scene.byId.get(other)).filter((other) => other !== undefined);

  if (item.role === "cell") {
    const parent = relations.nodes.get(id)?.parent as StepNo;
    const beside = near(shown(relations.children.get(parent) ?? []));
    if (beside !== undefined) return beside;
    return arrow === "ArrowUp" ? parent : neighbour(scene, structure, parent, arrow);
  }
  if (item.role === "box" && arrow === "ArrowDown") {
    const first = shown(relations.children.get(id) ?? [])[0];
    if (first !== undefined) return first.id;
  }
  const along = scene.direction === "right" ? dx : dy;
  if (along !== 0) {
    const joined = near(shown(joinedTo(scene, id, along)));
    if (joined !== undefined) return joined;
  }
  return near(scene.items.filter((other) => other.role !== "cell"));
}

/** Steps on the other end of the edges that are drawn, which may bridge hidden ones. */
function joinedTo(scene: Scene, id: StepNo, along: number): StepNo[] {
  const found: StepNo[] = [];
  for (let e = 0; e < scene.pairs.length; e += 2) {
    const from = scene.items[scene.pairs[e] as number] as Item;
    const to = scene.items[scene.pairs[e + 1] as number] as Item;
    if (along > 0 && from.id === id) found.push(to.id);
    else if (along < 0 && to.id === id) found.push(from.id);
  }
  return found;
}

function nearest(item: Item, candidates: Iterable<Item>, dx: number, dy: number): Item | undefined {
  let best: Item | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const other of candidates) {
    if (other.id === item.id) continue;
    const x = other.x + other.width / 2 - item.x - item.width / 2;
    const y = middleOf(other) - middleOf(item);
    const ahead = x * dx + y * dy;
    const aside = Math.abs(dx === 0 ? x : y);
    // Straight ahead counts more than near: two steps to the side are further than one rank on.
    const cost = ahead + 2 * aside;
    if (ahead > 1 && cost < least) {
      least = cost;
      best = other;
    }
  }
  return best;
}

function middleOf(item: Item): number {
  return item.y + (item.role === "box" ? BOX_HEAD : item.height) / 2;
}
