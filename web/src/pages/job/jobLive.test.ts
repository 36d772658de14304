import { expect, test } from "vitest";
import { sampleGraph, sampleJob, sampleLine, sampleNode, sampleStep } from "../../api/samples";
import type { EventType, JobState, Schemas, StepState } from "../../api/schemas";
import { createJobLive, type JobLive } from "./jobLive";
import { activityOf, isInLine } from "./steps";
import type { GraphDocument, JobPatch, StepDocument } from "./types";

type NodeDocument = Schemas["NodeDocument"];

const [node, step] = [sampleNode, sampleStep];
const child = (no: number, index: number, status: StepState, more: Partial<StepDocument> = {}) =>
  step(no, "draw", { index, status, parent: 1, ...more });
const job = (status: JobState, seq: number) => sampleJob({ status, seq });
const patch = (seq: number, more: Partial<JobPatch>): JobPatch => ({
  ...{ seq, job: null, steps: [], fans: {}, events: [] },
  ...more,
});
const line = (seq: number, type: EventType, no: number | null = null) => sampleLine(seq, { type, no });

/** `plan → draw ×? → bind`, at event 10. */
function begin(more: Partial<GraphDocument> = {}, timers: (() => void)[] = []): JobLive {
  const fan = { total: null, made: 0, by_status: {} };
  const graph = sampleGraph({
    nodes: [node(0, "plan", { status: "RUNNING" }), node(1, "draw", { fan }), node(2, "bind")],
    edges: [
      { source: "plan", target: "draw" },
      { source: "draw", target: "bind" },
    ],
    seq: 10,
    ...more,
  });
  return createJobLive(job("PROCESSING", 10), graph, (run) => timers.push(run));
}
const fanned = (status: number[]): Partial<GraphDocument> => ({
  nodes: [
    node(0, "plan", { status: "COMPLETED" }),
    node(1, "draw", { status: "PARKED", waiting_for: "fan", fan: { total: 3, made: 3, by_status: { QUEUED: 3 } } }),
    node(2, "bind"),
  ],
  seq: 20,
  statuses: ["QUEUED", "RUNNING", "PARKED:retry", "COMPLETED"],
  children: { "1": { no: [3, 4, 5], status } },
});

test("a snapshot is drawn at once, with its children", () => {
  const live = begin(fanned([3, 1, 2]));
  expect(live.structure().nodes.map((one) => one.label)).toEqual([
    "plan",
    "draw",
    "bind",
    "draw #0",
    "draw #1",
    "draw #2",
  ]);
  // A retrying step is not a waiting one, though the server counts both as PARKED.
  expect(live.graph.get(1)?.fan).toEqual({ total: 3, by: { succeeded: 1, running: 1, retrying: 1 } });
  expect(live.graph.counts()).toMatchObject({ succeeded: 2, running: 1, retrying: 1, pending: 1 });
});

test("a patch changes the step, the fan-out's bar and the job", () => {
  const live = begin(fanned([0, 0, 0]));
  let told = 0;
  live.subscribe("job", () => told++);
  const before = live.structure();
  live.apply(patch(21, { steps: [child(3, 0, "RUNNING")], job: job("PREVIEW", 21) }));
  expect(live.graph.get(3)?.look).toBe("running");
  expect(live.graph.get(1)?.fan?.by).toMatchObject({ running: 1, queued: 2 });
  expect(live.job().status).toBe("PREVIEW");
  expect(told).toBe(1);
  expect(live.structure()).toBe(before);
});

test("a fan-out that has learnt its size asks for its unknown children, and is laid out again once", () => {
  const timers: (() => void)[] = [];
  const live = begin({}, timers);
  const isShort = live.apply(patch(12, { fans: { "1": { total: 3, made: 3, by_status: { QUEUED: 3 } } } }));
  expect(isShort).toBe(true);
  expect(live.graph.get(1)?.fan?.total).toBe(3);
  live.load(job("PROCESSING", 20), sampleGraph(fanned([0, 0, 1])));
  expect(timers).toHaveLength(1);
  timers[0]?.();
  expect(live.structure().nodes).toHaveLength(6);
  expect(live.apply(patch(21, { fans: { "1": { total: 3, made: 3, by_status: {} } } }))).toBe(false);
});

test("a fan-out that has made children says so by an event alone", () => {
  const live = begin();
  expect(live.apply(patch(11, { events: [line(11, "step.fanned", 1)] }))).toBe(true);
  expect(live.apply(patch(12, { events: [line(12, "step.running", 0)] }))).toBe(false);
});

test("children that come with a patch are put in together", () => {
  const timers: (() => void)[] = [];
  const live = begin({}, timers);
  live.apply(patch(11, { steps: [child(4, 1, "RUNNING"), child(3, 0, "QUEUED")] }));
  live.apply(patch(12, { steps: [child(5, 2, "QUEUED")] }));
  expect(timers).toHaveLength(1);
  timers[0]?.();
  expect(
    live
      .structure()
      .nodes.slice(3)
      .map((one) => one.id),
  ).toEqual([3, 4, 5]);
});

test("a snapshot that is older than what was heard takes nothing back", () => {
  const live = begin(fanned([0, 0, 0]));
  live.apply(
    patch(30, { steps: [step(0, "plan", { status: "FAILED" }), child(3, 0, "COMPLETED")], job: job("FAILED", 30) }),
  );
  live.load(job("PROCESSING", 25), sampleGraph({ ...fanned([1, 1, 1]), seq: 25 }));
  expect(live.graph.get(0)?.look).toBe("failed");
  expect(live.graph.get(3)?.look).toBe("succeeded");
  expect(live.graph.get(4)?.look).toBe("running");
  expect(live.graph.get(1)?.fan?.by).toMatchObject({ succeeded: 1, running: 2 });
  expect(live.job().status).toBe("FAILED");
});

test("patches that come twice or late change nothing", () => {
  const live = begin(fanned([0, 0, 0]));
  const once = patch(21, { steps: [child(3, 0, "RUNNING")], events: [line(21, "step.running", 3)] });
  live.apply(once);
  live.apply(once);
  live.apply(patch(22, { steps: [child(3, 0, "COMPLETED")], events: [line(22, "step.completed", 3)] }));
  live.apply(once);
  live.apply(patch(5, { steps: [child(3, 0, "QUEUED"), child(5, 2, "RUNNING")], job: job("PENDING", 5) }));
  expect(live.graph.get(3)?.look).toBe("succeeded");
  expect(live.graph.get(1)?.fan?.by).toMatchObject({ succeeded: 1, queued: 2, running: 0 });
  expect(live.lines().map((one) => one.seq)).toEqual([21, 22]);
  expect(live.job().status).toBe("PROCESSING");
});

test("pages of steps fill in what a snapshot leaves out, but not over what was heard", () => {
  const live = begin(fanned([1, 1, 0]));
  live.apply(patch(21, { steps: [child(4, 1, "COMPLETED", { attempt: 2 })] }));
  live.learn([child(3, 0, "RUNNING", { attempt: 1 }), child(4, 1, "RUNNING", { attempt: 1 })]);
  expect(live.graph.get(3)).toMatchObject({ attempt: 1, look: "running" });
  expect(live.graph.get(4)).toMatchObject({ attempt: 2, look: "succeeded" });
});

test("steps are counted as the bars have them", () => {
  const live = begin(fanned([0, 0, 0]));
  for (let i = 0; i < 3; i++) live.apply(patch(21 + i, { steps: [child(3 + i, i, "COMPLETED")] }));
  live.apply(patch(30, { fans: { "1": { total: 3, made: 3, by_status: { COMPLETED: 3 } } } }));
  expect(live.graph.counts()).toMatchObject({ succeeded: 4, pending: 1 });
});

test("a job does what matters most of what its steps do", () => {
  const of = (...nodes: Partial<NodeDocument>[]) =>
    activityOf(begin({ nodes: nodes.map((one, no) => node(no, `s${no}`, one)) }));
  const event: Partial<NodeDocument> = { kind: "event", status: "PARKED", waiting_for: "event:approved" };
  expect(of({ status: "RUNNING" }, event)).toBe("waiting");
  expect(of({ status: "RUNNING" }, { status: "QUEUED" })).toBe("running");
  expect(of({ kind: "recipe", status: "PARKED", waiting_for: "child" }, { status: "QUEUED" })).toBe("running");
  expect(of({ status: "PARKED", waiting_for: "external:studio" })).toBe("running");
  expect(of({ status: "HELD", waiting_for: "slot" }, { status: "PARKED", waiting_for: "retry" })).toBe("queued");
  expect(of({ kind: "timer", status: "PARKED", waiting_for: "timer" }, {})).toBe("sleeping");
  expect(of({ status: "COMPLETED" }, {})).toBe("queued");
  expect(activityOf(begin(fanned([0, 2, 3])))).toBe("queued");
  expect(activityOf(begin(fanned([3, 2, 3])))).toBe("sleeping");
});

test("a step that stands in a line is known", () => {
  expect(isInLine(begin())).toBe(false);
  expect(isInLine(begin({ nodes: [node(0, "a", { status: "HELD", waiting_for: "slot" })] }))).toBe(true);
  expect(isInLine(begin({ nodes: [node(0, "a", { status: "HELD", waiting_for: "paused,slot" })] }))).toBe(true);
});
