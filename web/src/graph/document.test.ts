import { expect, test } from "vitest";
import { sampleGraph, sampleNode } from "../api/samples";
import { waitText } from "../waitText";
import { childrenIn, fanOf, liveOf, progressOf, structureOf } from "./document";

test("a job's graph becomes steps and edges by number", () => {
  const nodes = [
    sampleNode(0, "fetch", { status: "COMPLETED", started_at: "2026-11-16T02:55:30.000Z" }),
    sampleNode(1, "send", { status: "PARKED", waiting_for: "retry" }),
  ];
  const edges = [{ source: "fetch", target: "send" }];
  const structure = structureOf(sampleGraph({ nodes, edges }));
  expect(structure.edges).toEqual([[0, 1]]);
  expect(structure.nodes[0]).toMatchObject({ id: 0, name: "fetch", look: "succeeded", meta: "main" });
  expect(structure.nodes[0]?.startedAt).toBe(Date.UTC(2026, 10, 16, 2, 55, 30));
  expect(structure.nodes[1]).toMatchObject({ look: "retrying", meta: "retries soon" });
});

test("children that are not made yet are pending", () => {
  expect(fanOf({ total: 10, made: 4, by_status: { COMPLETED: 3, RUNNING: 1 } })).toEqual({
    total: 10,
    by: { succeeded: 3, running: 1, pending: 6 },
  });
});

test("children told by their states alone can be drawn", () => {
  const nodes = [sampleNode(3, "draw", { status: "PARKED", waiting_for: "fan" })];
  const graph = {
    nodes,
    statuses: ["COMPLETED", "PARKED:retry"],
    children: { "3": { no: [7, 8, 12], status: [0, 1, 9] } },
  };
  const children = childrenIn(graph);
  expect(children.map((child) => [child.id, child.label, child.look, child.parent])).toEqual([
    [7, "draw #0", "succeeded", 3],
    [8, "draw #1", "retrying", 3],
    // A state that the table does not have is not worth a broken page.
    [12, "draw #2", "pending", 3],
  ]);
});

test("what is waited for is said in words", () => {
  expect(waitText("event:approved")).toBe("waits for approved");
  expect(waitText("event:a:b")).toBe("waits for a:b");
  expect(waitText("external:studio")).toBe("waits for studio");
  expect(waitText("slot")).toBe("waits for a slot");
  expect(waitText("paused,slot")).toBe("the job is paused");
  expect(waitText("something:new")).toBe("waits for something:new");
});

test("what runs says how far it is, and nothing of it stays when it is over", () => {
  const running = sampleNode(0, "dip", { status: "RUNNING", progress: { pct: 24.7, message: "in the fixer" } });
  expect(liveOf(running).meta).toBe("25 % in the fixer");
  expect(liveOf({ ...running, status: "COMPLETED" }).meta).toBe("main");
  expect(progressOf({ pct: 900 })?.part).toBe(100);
  expect(progressOf({})).toBeNull();
  expect(progressOf("odd")).toBeNull();
});
