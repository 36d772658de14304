/** From what the API says of a job to what the graph draws. */
import type { NodeKind, Schemas } from "../api/schemas";
import { isStepState, type Look, stepLook } from "../state";
import { waitText } from "../waitText";
import type { Edge, Fan, GraphNode, StepNo, StepPatch, Structure } from "./types";

type GraphDocument = Schemas["GraphDocument"];
type NodeDocument = Schemas["NodeDocument"];
type StepDocument = Schemas["StepDocument"];
type FanDocument = Schemas["FanDocument"];

const LABEL_MAX = 60;
/** What does the work of a step; null: a worker of its queue. */
const DOER: Readonly<Record<NodeKind, string | null>> = {
  task: null,
  recipe: "child job",
  timer: "timer",
  event: "from outside",
  approval: "people",
};
const BETWEEN: readonly Look[] = ["pending", "queued", "ready", "retrying"];

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

function metaOf(
  step: Pick<NodeDocument, "kind" | "queue" | "waiting_for"> & { progress?: unknown },
  look: Look,
): string {
  if (step.waiting_for !== null) return waitText(step.waiting_for);
  const said = look === "running" ? progressOf(step.progress) : null;
  return said === null ? (DOER[step.kind] ?? step.queue) : [said.percent, said.message].filter(Boolean).join(" ");
}

export interface Progress {
  /** `25 %`; empty when only a message was said. */
  readonly percent: string;
  readonly part: number | null;
  readonly message: string;
}

/** What a handler says of how far it is; null when it says nothing. */
export function progressOf(progress: unknown): Progress | null {
  if (typeof progress !== "object" || progress === null) return null;
  const { pct, message } = progress as { readonly pct?: unknown; readonly message?: unknown };
  const part = typeof pct === "number" ? Math.min(100, Math.max(0, pct)) : null;
  const text = typeof message === "string" ? message : "";
  if (part === null && text === "") return null;
  return { percent: part === null ? "" : `${Math.round(part)} %`, part, message: text };
}

/** The children that `?children=states` tells of, by number and state alone: enough to draw them. */
export function childrenIn(graph: Pick<GraphDocument, "nodes" | "statuses" | "children">): GraphNode[] {
  const nodes: GraphNode[] = [];
  const statuses = (graph.statuses ?? []).map((text) => text.split(":"));
  for (const node of graph.nodes) {
    const columns = graph.children?.[node.no];
    columns?.no.forEach((no, i) => {
      const [status = "BLOCKED", kind] = statuses[columns.status[i] ?? -1] ?? [];
      nodes.push({
        id: no,
        name: node.step,
        label: `${node.step} #${i}`.slice(0, LABEL_MAX),
        kind: node.kind,
        parent: node.no,
        look: isStepState(status) ? stepLook(status, kind) : "pending",
        meta: kind === undefined ? (DOER[node.kind] ?? node.queue) : waitText(kind),
        attempt: 0,
        startedAt: null,
        finishedAt: null,
      });
    });
  }
  return nodes;
}

/** The part of a step that changes; also what a patch of the stream is made of. */
export function liveOf(
  step: Pick<NodeDocument, "kind" | "status" | "waiting_for" | "attempt" | "queue" | "started_at" | "finished_at"> & {
    readonly progress?: unknown;
  },
): Required<Pick<StepPatch, "look" | "meta" | "attempt" | "startedAt" | "finishedAt">> {
  const look = stepLook(step.status, step.waiting_for);
  return {
    look,
    meta: metaOf(step, look),
    attempt: step.attempt,
    // A step that is queued again still has the start of its last attempt: its clock does not run now.
    startedAt: BETWEEN.includes(look) ? null : timeOf(step.started_at),
    finishedAt: timeOf(step.finished_at),
  };
}

export function fanOf(fan: FanDocument): Fan {
  const by: Partial<Record<Look, number>> = {};
  for (const [status, count] of Object.entries(fan.by_status)) {
    const look = isStepState(status) ? stepLook(status) : "pending";
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
