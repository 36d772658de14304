import { expect, test } from "vitest";
import { fanOf, structureOf } from "./document";

const base = {
  ...{ kind: "task", run: "x", queue: "main", needs: [], complete: false, running: false, failed: false, attempt: 1 },
  ...{ failures: 0, losses: 0, seconds: null, started_at: null, finished_at: null, waiting_for: null, wake_at: null },
  ...{ progress: null, error: null, fan: null },
};

test("a job's graph becomes steps and edges by number", () => {
  const nodes = [
    { ...base, no: 0, step: "fetch", status: "COMPLETED", started_at: "2026-11-16T02:55:30.000Z" },
    { ...base, no: 1, step: "send", status: "PARKED", waiting_for: "retry" },
  ];
  const edges = [{ source: "fetch", target: "send" }];
  const structure = structureOf({ nodes, edges } as unknown as Parameters<typeof structureOf>[0]);
  expect(structure.edges).toEqual([[0, 1]]);
  expect(structure.nodes[0]).toMatchObject({ id: 0, name: "fetch", look: "succeeded", meta: "main" });
  expect(structure.nodes[0]?.startedAt).toBe(Date.UTC(2026, 10, 16, 2, 55, 30));
  expect(structure.nodes[1]).toMatchObject({ look: "retrying", meta: "waits for retry" });
});

test("children that are not made yet are pending", () => {
  expect(fanOf({ total: 10, made: 4, by_status: { COMPLETED: 3, RUNNING: 1 } })).toEqual({
    total: 10,
    by: { succeeded: 3, running: 1, pending: 6 },
  });
});
