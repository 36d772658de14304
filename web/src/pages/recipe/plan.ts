/** A recipe before any job of it: the same graph, planned. */
import type { components } from "../../api/types.gen";
import type { Edge, GraphNode, Structure } from "../../graph/types";
import { expressionText } from "./words";

export type RecipeDocument = components["schemas"]["RecipeDocument"];
export type RecipeNode = components["schemas"]["RecipeNode"];

const META_MAX = 60;

export function planOf(recipe: Pick<RecipeDocument, "nodes" | "edges">): Structure {
  const numbers = new Map(recipe.nodes.map((node, no) => [node.step, no]));
  const edges: Edge[] = recipe.edges.flatMap(({ source, target }) => {
    const [from, to] = [numbers.get(source), numbers.get(target)];
    return from === undefined || to === undefined ? [] : [[from, to] as const];
  });
  return { nodes: recipe.nodes.map(nodeOf), edges };
}

function nodeOf(node: RecipeNode, no: number): GraphNode {
  return {
    id: no,
    name: node.step,
    label: node.step.slice(0, META_MAX),
    kind: node.kind,
    look: "pending",
    meta: metaOf(node).slice(0, META_MAX),
    attempt: 0,
    startedAt: null,
    finishedAt: null,
    // How many children there will be is known when the step before has said so.
    ...(node.each === null ? {} : { fan: { total: null, by: {} } }),
  };
}

/** What decides whether and where it runs, the more surprising first. */
export function metaOf(node: RecipeNode): string {
  if (node.when !== null) return `if ${expressionText(node.when)}`;
  if (node.each !== null) return `for each of ${expressionText(node.each)}`;
  if (node.provider !== "") return `at ${node.provider}`;
  return node.queue;
}
