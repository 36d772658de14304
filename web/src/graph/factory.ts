import type { Edge, GraphNode, Structure } from "./types";

/** A step as tests and the demo need one. */
export function step(id: number, more: Partial<GraphNode> = {}): GraphNode {
  return {
    id,
    name: `step-${id}`,
    label: `step-${id}`,
    kind: "task",
    look: "pending",
    meta: "main",
    attempt: 0,
    startedAt: null,
    finishedAt: null,
    ...more,
  };
}

export function graph(nodes: readonly (number | GraphNode)[], edges: readonly Edge[]): Structure {
  return { nodes: nodes.map((node) => (typeof node === "number" ? step(node) : node)), edges };
}

/** `0 → fan of many → last`, with its children loaded. */
export function fanGraph(children: number): Structure {
  const nodes = [step(0), step(1, { fan: { total: children, by: { pending: children } } }), step(2)];
  for (let i = 0; i < children; i++) nodes.push(step(3 + i, { parent: 1, name: "step-1", label: `#${i}` }));
  return { nodes, edges: [[0, 1], [1, 2]] }; // biome-ignore format: a graph on one line
}
