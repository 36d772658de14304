import type { Edge, GraphNode, StepNo, Structure } from "./types";

/** A structure, looked up by number. */
export interface Relations {
  readonly nodes: ReadonlyMap<StepNo, GraphNode>;
  readonly children: ReadonlyMap<StepNo, readonly StepNo[]>;
  readonly needs: ReadonlyMap<StepNo, readonly StepNo[]>;
  readonly neededBy: ReadonlyMap<StepNo, readonly StepNo[]>;
}

const known = new WeakMap<Structure, Relations>();

export function relationsOf(structure: Structure): Relations {
  const found = known.get(structure);
  if (found !== undefined) return found;
  const nodes = new Map(structure.nodes.map((node) => [node.id, node]));
  const children = new Map<StepNo, StepNo[]>();
  for (const node of structure.nodes) if (node.parent !== undefined) append(children, node.parent, node.id);
  const { needs, neededBy } = sidesOf(structure.edges);
  const made = { nodes, children, needs, neededBy };
  known.set(structure, made);
  return made;
}

export function sidesOf(edges: readonly Edge[]): Pick<Relations, "needs" | "neededBy"> {
  const needs = new Map<StepNo, StepNo[]>();
  const neededBy = new Map<StepNo, StepNo[]>();
  for (const [from, to] of edges) {
    append(neededBy, from, to);
    append(needs, to, from);
  }
  return { needs, neededBy };
}

/** A step with all that leads to it and all that follows from it, its fan-out's for a child. */
export function lineOf(relations: Relations, id: StepNo): ReadonlySet<StepNo> {
  const line = new Set<StepNo>([id]);
  const start = relations.nodes.get(id)?.parent ?? id;
  for (const child of start === id ? (relations.children.get(id) ?? []) : []) line.add(child);
  for (const side of [relations.needs, relations.neededBy]) {
    const seen = new Set<StepNo>([start]);
    for (const at of seen) for (const next of side.get(at) ?? []) seen.add(next);
    for (const at of seen) {
      line.add(at);
      if (at !== start) for (const child of relations.children.get(at) ?? []) line.add(child);
    }
  }
  return line;
}

function append(map: Map<StepNo, StepNo[]>, key: StepNo, value: StepNo): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [value]);
  else list.push(value);
}
