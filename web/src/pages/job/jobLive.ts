/**
 * One job as it stands right now, outside React: a snapshot, then patches. A patch wakes the cards that it names and
 * nothing else; the layout is done again only when there are new steps.
 */
import type { StepState } from "../../api/schemas";
import { childOf, childrenIn, liveOf, structureOf } from "../../graph/document";
import { createGraphStore, type GraphStore } from "../../graph/store";
import type { GraphNode, StepNo, StepPatch, Structure } from "../../graph/types";
import { type AttemptLog, createAttemptLog } from "./attemptLog";
import { createTally } from "./tally";
import type { EventLine, FanDocument, GraphDocument, JobDocument, JobPatch, StepDocument } from "./types";

/** A new layout moves every step: children that come by the hundred are put in together. */
const STRUCTURE_MS = 250;
/** Lines that were heard while the page is open; older ones are a page of the events tab. */
const LINES_MAX = 5_000;

export type Topic = "job" | "structure" | "events";

export interface JobLive {
  readonly graph: GraphStore;
  readonly attempts: AttemptLog;
  job(): JobDocument;
  structure(): Structure;
  /** The step's state as the server names it, and what it waits for. */
  fact(id: StepNo): Fact | undefined;
  /** What was heard since the page was opened, oldest first. */
  lines(): readonly EventLine[];
  /** From where to listen on. */
  seq(): number;
  /** A whole snapshot; what a later patch has said of a step stays. */
  load(job: JobDocument, graph: GraphDocument): void;
  /** More of steps that are known by their state alone. */
  learn(steps: readonly StepDocument[]): void;
  /** Answers whether there are unknown steps, so that the snapshot must be read again. */
  apply(patch: JobPatch): boolean;
  subscribe(topic: Topic, wake: () => void): () => void;
}

export interface Fact {
  readonly status: StepState;
  readonly waitingFor: string | null;
}

export type Later = (run: () => void, ms: number) => void;
const byTimer: Later = (run, ms) => {
  setTimeout(run, ms);
};

export function createJobLive(first: JobDocument, document: GraphDocument, later: Later = byTimer): JobLive {
  const tally = createTally();
  const graph = createGraphStore([]);
  const attempts = createAttemptLog();
  const wakers: Record<Topic, Set<() => void>> = { job: new Set(), structure: new Set(), events: new Set() };
  /** The last event that each step is known to include. */
  const known = new Map<StepNo, number>();
  const facts = new Map<StepNo, Fact>();
  let job = first;
  let top: StepNo[] = [];
  let kids: StepNo[] = [];
  let structure: Structure = { nodes: [], edges: [] };
  let isRebuilding = false;
  let base = 0;
  let jobSeq = 0;
  let heard = 0;
  let lines: readonly EventLine[] = [];

  const wake = (topic: Topic): void => {
    for (const one of wakers[topic]) one();
  };
  const rebuild = (): void => {
    isRebuilding = false;
    const nodes = [...top, ...kids].map((id) => graph.get(id)).filter((node) => node !== undefined);
    structure = { nodes, edges: structure.edges };
    wake("structure");
  };
  const rebuildSoon = (): void => {
    if (isRebuilding) return;
    isRebuilding = true;
    // Unless it was done meanwhile.
    later(() => isRebuilding && rebuild(), STRUCTURE_MS);
  };
  const learnChildren = (children: readonly GraphNode[]): void => {
    const fresh = children.filter((child) => graph.get(child.id) === undefined);
    if (fresh.length === 0) return;
    graph.add(fresh);
    kids = [...kids, ...fresh.map((child) => child.id)].sort((a, b) => a - b);
    rebuildSoon();
  };
  /** The bars of fan-outs, last: they win over what the store has counted from the children. */
  const bars = (parents: Iterable<StepNo>): StepPatch[] => {
    const patches: StepPatch[] = [];
    for (const id of parents) {
      const fan = tally.fan(id);
      if (fan === undefined) continue;
      if (graph.get(id)?.fan?.total !== fan.total) rebuildSoon();
      patches.push({ id, fan });
    }
    return patches;
  };
  /** Steps as patches; children that are new are learnt on the way. */
  const patchesOf = (steps: readonly StepDocument[], touched: Set<StepNo>): StepPatch[] => {
    const patches: StepPatch[] = [];
    const fresh: GraphNode[] = [];
    for (const step of steps) {
      const parent = parentOf(step);
      if (parent !== undefined) {
        const node = childOf(step, parent);
        tally.note(parent, step.no, node.look);
        touched.add(parent);
        if (graph.get(step.no) === undefined) fresh.push(node);
      }
      facts.set(step.no, { status: step.status, waitingFor: step.waiting_for });
      patches.push({ id: step.no, ...liveOf(step) });
    }
    learnChildren(fresh);
    return patches;
  };
  const parentOf = (step: StepDocument): StepNo | undefined => {
    if (step.parent != null) return step.parent;
    if (step.index === null) return undefined;
    return tally.parentOf(step.no) ?? top.find((id) => graph.get(id)?.name === step.step);
  };
  const tell = (fans: Iterable<readonly [StepNo, FanDocument]>, touched: Set<StepNo>): boolean => {
    let isShort = false;
    for (const [id, fan] of fans) {
      tally.told(id, fan);
      touched.add(id);
      isShort ||= tally.isShort(id);
    }
    return isShort;
  };
  const hear = (more: readonly EventLine[], steps: readonly StepDocument[]): void => {
    const fresh = more.filter((line) => line.seq > heard);
    if (fresh.length === 0) return;
    heard = (fresh.at(-1) as EventLine).seq;
    const workers = new Map(steps.map((step) => [step.no, step.worker]));
    for (const line of fresh) {
      if (line.no !== null) attempts.hear(line, graph.get(line.no)?.look, workers.get(line.no));
    }
    lines = [...lines, ...fresh].slice(-LINES_MAX);
    wake("events");
  };

  const load = (nextJob: JobDocument, next: GraphDocument): void => {
    const isLater = (id: StepNo): boolean => (known.get(id) ?? 0) > next.seq;
    base = Math.max(base, next.seq);
    heard = Math.max(heard, Math.min(next.seq, nextJob.seq));
    if (nextJob.seq >= jobSeq) {
      job = nextJob;
      jobSeq = nextJob.seq;
    }
    const shape = structureOf(next);
    const children = childrenIn(next);
    const isNew = top.length === 0;
    top = shape.nodes.map((node) => node.id);
    structure = { nodes: structure.nodes, edges: shape.edges };
    graph.add(shape.nodes);
    const touched = new Set<StepNo>();
    for (const node of next.nodes) {
      if (!isLater(node.no)) facts.set(node.no, { status: node.status, waitingFor: node.waiting_for });
    }
    for (const child of children) {
      if (!isLater(child.id)) tally.note(child.parent as StepNo, child.id, child.look);
      touched.add(child.parent as StepNo);
    }
    const patches: StepPatch[] = shape.nodes
      .filter((node) => !isLater(node.id))
      .map(({ id, look, meta, attempt, startedAt, finishedAt }) => ({
        id,
        look,
        meta,
        attempt,
        startedAt,
        finishedAt,
      }));
    for (const child of children) {
      const has = graph.get(child.id);
      if (has !== undefined && !isLater(child.id) && has.look !== child.look) {
        patches.push({ id: child.id, look: child.look, meta: child.meta });
      }
    }
    learnChildren(children);
    const fans = next.nodes.flatMap((node) => (node.fan === null ? [] : [[node.no, node.fan] as const]));
    tell(
      fans.filter(([id]) => !isLater(id)),
      touched,
    );
    graph.patch([...patches, ...bars(touched)]);
    if (isNew) rebuild();
    wake("job");
  };

  load(first, document);
  return {
    graph,
    attempts,
    job: () => job,
    structure: () => structure,
    fact: (id) => facts.get(id),
    lines: () => lines,
    seq: () => Math.min(base, jobSeq),
    load,
    learn: (steps) => {
      const touched = new Set<StepNo>();
      // A page was read at some moment before now: what was heard since is newer.
      const patches = patchesOf(
        steps.filter((step) => !known.has(step.no)),
        touched,
      );
      graph.patch([...patches, ...bars(touched)]);
    },
    apply: (patch) => {
      const steps = patch.seq < base ? [] : patch.steps.filter((step) => (known.get(step.no) ?? 0) <= patch.seq);
      const touched = new Set<StepNo>();
      const patches = patchesOf(steps, touched);
      const fans = Object.entries(patch.fans).map(([no, fan]) => [Number(no), fan] as const);
      const isFanned = patch.events.some((line) => line.seq > base && line.type === "step.fanned");
      const isShort = (patch.seq >= base && tell(fans, touched)) || isFanned;
      for (const step of steps) known.set(step.no, patch.seq);
      for (const [id] of fans) known.set(id, patch.seq);
      if (patches.length > 0 || touched.size > 0) graph.patch([...patches, ...bars(touched)]);
      hear(patch.events, steps);
      if (patch.job !== null && patch.seq >= jobSeq) {
        job = patch.job;
        jobSeq = patch.seq;
        wake("job");
      }
      return isShort;
    },
    subscribe: (topic, one) => {
      wakers[topic].add(one);
      return () => wakers[topic].delete(one);
    },
  };
}
