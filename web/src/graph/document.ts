/** From what the API says of a job to what the graph draws. */
import type { components } from "../api/types.gen";
import { type Look, stepLook } from "../state";
import type { Edge, Fan, GraphNode, StepNo, StepPatch, Structure } from "./types";

type GraphDocument = components["schemas"]["GraphDocument"];
type NodeDocument = components["schemas"]["NodeDocument"];
type StepDocument = components["schemas"]["StepDocument"];
type FanDocument = components["schemas"]["FanDocument"];

const LABEL_MAX = 60;

/** `GET /jobs/{id}/graph`, with the children that were loaded by `/jobs/{id}/steps?step=…`, if any. */
export function structureOf(graph: GraphDocument, children: readonly StepDocument[] = []): Structure {
  const numbers = new Map(graph.nodes.map((node) => [node.step, node.no]));
  const edges: Edge[] = [];
  for (const { source, target } of graph.edges) {
    const [from, to] = [numbers.get(source), numbers.get(target)];
    if (from !== undefined && to !== undefined) edges.push([from, to]);
  }
  const nodes = graph.nodes.map(nodeOf);
  for (const child of children) {
    const parent = numbers.get(child.step);
    if (parent !== undefined && parent !== child.no) nodes.push(childOf(child, parent));
  }
  return { nodes, edges };
}

export function nodeOf(node: NodeDocument): GraphNode {
  return {
    id: node.no,
    name: node.step,
    label: node.step.slice(0, LABEL_MAX),
    kind: node.kind,
    ...liveOf(node),
    ...(node.fan === null ? {} : { fan: fanOf(node.fan) }),
  };
}

export function childOf(child: StepDocument, parent: StepNo): GraphNode {
  return {
    id: child.no,
    name: child.step,
    label: `${child.step} #${child.index ?? child.no}`.slice(0, LABEL_MAX),
    kind: child.kind,
    parent,
    ...liveOf(child),
  };
}

/** The part of a step that changes; also what a patch of the stream is made of. */
export function liveOf(
  step: Pick<NodeDocument, "status" | "waiting_for" | "attempt" | "queue" | "started_at" | "finished_at">,
): Required<Pick<StepPatch, "look" | "meta" | "attempt" | "startedAt" | "finishedAt">> {
  return {
    look: stepLook(step.status, step.waiting_for),
    meta: step.waiting_for === null ? step.queue : `waits for ${step.waiting_for}`,
    attempt: step.attempt,
    startedAt: timeOf(step.started_at),
    finishedAt: timeOf(step.finished_at),
  };
}

export function fanOf(fan: FanDocument): Fan {
  const by: Partial<Record<Look, number>> = {};
  for (const [status, count] of Object.entries(fan.by_status)) {
    const look = stepLook(status);
    by[look] = (by[look] ?? 0) + count;
  }
  // Children that are not made yet are pending: the bar is as long as the fan-out will be.
  const unmade = Math.max(0, (fan.total ?? fan.made) - fan.made);
  if (unmade > 0) by.pending = (by.pending ?? 0) + unmade;
  return { total: fan.total, by };
}

function timeOf(text: string | null): number | null {
  return text === null ? null : Date.parse(text);
}
