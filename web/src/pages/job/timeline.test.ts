import { expect, test } from "vitest";
import type { Outcome } from "../../api/schemas";
import { step } from "../../graph/factory";
import { createGraphStore } from "../../graph/store";
import type { Edge, GraphNode } from "../../graph/types";
import { createAttemptLog } from "./attemptLog";
import { type Row, rowsOf } from "./timeline";
import { marksOf, panned, sinceText, wholeOf, zoomed } from "./timeScale";
import type { Attempt } from "./types";

const attempt = (no: number, n: number, from: number, to: number | null, outcome: Outcome): Attempt => ({
  ...{ no, attempt: n, outcome, worker: "w-1" },
  started_at: new Date(from).toISOString(),
  finished_at: to === null ? null : new Date(to).toISOString(),
});
function rows(nodes: GraphNode[], edges: Edge[], attempts: Attempt[], open: number[] = []): Row[] {
  const log = createAttemptLog();
  log.merge(attempts);
  return rowsOf({ structure: { nodes, edges }, store: createGraphStore(nodes), log, open: new Set(open), began: 0 });
}
const shape = (row: Row | undefined) => row?.segments.map((one) => [one.kind, one.look, one.from, one.to]);

test("attempts are segments, and what lies between them is waiting", () => {
  const node = step(0, { look: "succeeded", startedAt: 5_000, finishedAt: 6_000, attempt: 2 });
  const [row] = rows([node], [], [attempt(0, 1, 1_000, 2_000, "failed"), attempt(0, 2, 5_000, 6_000, "succeeded")]);
  expect(shape(row)).toEqual([
    ["queue", "queued", 0, 1_000],
    ["run", "failed", 1_000, 2_000],
    ["wait", "retrying", 2_000, 5_000],
    ["run", "succeeded", 5_000, 6_000],
  ]);
});

test("after its worker was lost, a step stands in the queue and does not wait to be tried", () => {
  const node = step(0, { look: "succeeded", attempt: 2 });
  const [row] = rows([node], [], [attempt(0, 1, 0, 2_000, "lost"), attempt(0, 2, 5_000, 6_000, "succeeded")]);
  expect(shape(row)?.map(([kind]) => kind)).toEqual(["run", "queue", "run"]);
});

test("a step that waits for a person runs nothing, also when it is over", () => {
  const node = step(0, { kind: "event", look: "succeeded", attempt: 1, finishedAt: 900 });
  expect(shape(rows([node], [], [attempt(0, 1, 0, 900, "succeeded")])[0])).toEqual([["wait", "succeeded", 0, 900]]);
});

test("a step that waits for a person waits from when it could begin", () => {
  const first = step(0, { look: "succeeded", startedAt: 0, finishedAt: 3_000 });
  const waits = step(1, { look: "waiting" });
  const told = rows([waits, first], [[0, 1]], []);
  expect(told.map((row) => row.id)).toEqual([0, 1]);
  expect(shape(told[1])).toEqual([["wait", "waiting", 3_000, null]]);
  const over = step(1, { look: "succeeded", finishedAt: 9_000 });
  expect(shape(rows([first, over], [[0, 1]], [])[1])).toEqual([["wait", "waiting", 3_000, 9_000]]);
});

test("what runs has no end, and what has not begun comes last", () => {
  const nodes = [step(0), step(1, { look: "running", startedAt: 10 }), step(2, { look: "skipped", finishedAt: 5 })];
  const told = rows(nodes, [], [attempt(1, 1, 10, null, "running")]);
  expect(told.map((row) => row.id)).toEqual([1, 0, 2]);
  expect(shape(told[0])).toEqual([["run", "running", 10, null]]);
  expect(shape(told[1])).toEqual([]);
});

test("until attempts are loaded, a step tells of its last one", () => {
  const [row] = rows([step(0, { look: "failed", startedAt: 5, finishedAt: 9 })], [], []);
  expect(shape(row)).toEqual([["run", "failed", 5, 9]]);
});

test("a fan-out is as long as its children, which are shown when it is open", () => {
  const nodes = [
    step(1, { look: "waiting", fan: { total: 2, by: {} } }),
    step(3, { parent: 1, look: "running", startedAt: 400 }),
    step(4, { parent: 1, look: "succeeded", startedAt: 100, finishedAt: 300 }),
  ];
  const folded = rows(nodes, [], []);
  expect(folded).toHaveLength(1);
  expect(shape(folded[0])).toEqual([["span", "running", 100, null]]);
  expect(folded[0]).toMatchObject({ isOpen: false, children: 2 });
  expect(rows(nodes, [], [], [1]).map((row) => [row.id, row.depth])).toEqual([[1, 0], [4, 1], [3, 1]]); // biome-ignore format: pairs
});

test("a fan-out that is over ends with its last child, though only their attempts are loaded", () => {
  const nodes = [
    step(1, { look: "failed", fan: { total: 2, by: {} } }),
    step(3, { parent: 1, look: "failed" }),
    step(4, { parent: 1, look: "succeeded" }),
  ];
  const told = rows(nodes, [], [attempt(3, 1, 100, 500, "failed"), attempt(4, 1, 100, 300, "succeeded")]);
  expect(shape(told[0])).toEqual([["span", "failed", 100, 500]]);
});

test("zoom keeps what is pointed at, and nothing goes beyond the job", () => {
  const whole = wholeOf(0, 1_000, 0);
  const near = zoomed(whole, 250, 0.5, whole);
  expect((250 - near.from) / (near.to - near.from)).toBeCloseTo(250 / whole.to, 5);
  expect(zoomed(near, 250, 100, whole)).toEqual(whole);
  expect(panned(near, -9_999, whole).from).toBe(0);
  expect(panned(near, 9_999, whole).to).toBeCloseTo(whole.to, 5);
  expect(zoomed(whole, 0, 0, whole).to).toBeGreaterThan(0);
});

test("marks stand at round times and have room", () => {
  const marks = marksOf({ from: 0, to: 60_000 }, 0, 900);
  expect(marks.map((mark) => mark.label)).toEqual(["0", "10 s", "20 s", "30 s", "40 s", "50 s", "1 min"]);
  for (const span of [7, 130, 5_000, 1e6, 1e8, 1e11]) {
    const many = marksOf({ from: 3, to: 3 + span }, 3, 1_000).length;
    expect(many).toBeLessThanOrEqual(12);
  }
  expect(marksOf({ from: 0, to: 0 }, 0, 900)).toEqual([]);
  expect(sinceText(90_061_000, 60_000)).toBe("1 d 1 h");
});
