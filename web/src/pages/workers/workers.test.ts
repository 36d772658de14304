import { describe, expect, test } from "vitest";
import { grouped, heartbeatOf, servicesOf, type Worker } from "./workers";

const WORKER: Worker = {
  id: "w",
  host: "a",
  pid: 1,
  queues: [],
  concurrency: 1,
  running: 0,
  steps: [],
  started_at: "2026-01-01T00:00:00Z",
  seen_at: "2026-01-01T00:00:00Z",
  lease_until: "2026-01-01T00:00:20Z",
  lost_at: null,
  is_live: true,
  services: null,
};

describe("workers", () => {
  test("stand by place, the lost ones apart and the latest first", () => {
    const lost = (id: string, at: string): Worker => ({ ...WORKER, id, lost_at: at });
    const all = [
      { ...WORKER, id: "b9", host: "b", pid: 9 },
      lost("early", "2026-01-01T00:00:00Z"),
      { ...WORKER, id: "a10", pid: 10 },
      { ...WORKER, id: "a9", pid: 9 },
      lost("late", "2026-01-01T01:00:00Z"),
    ];
    expect(grouped(all).alive.map((one) => one.id)).toEqual(["a9", "a10", "b9"]);
    expect(grouped(all).lost.map((one) => one.id)).toEqual(["late", "early"]);
  });

  test("tell of services that are not well, by name", () => {
    const services = { worker: "ok", poller: "is not ready", loops: "has not run for 42 s" };
    expect(servicesOf({ services })).toEqual({
      count: 3,
      faults: [
        { name: "loops", state: "has not run for 42 s" },
        { name: "poller", state: "is not ready" },
      ],
    });
    expect(servicesOf({ services: { worker: "ok" } })).toEqual({ count: 1, faults: [] });
    expect(servicesOf({ services: null })).toBeNull();
  });

  test.each([
    [5, "good"],
    [16, "late"],
    [20, "overdue"],
    [90, "overdue"],
  ])("have a heartbeat: after %s s it is %s", (seconds, heartbeat) => {
    expect(heartbeatOf(WORKER, Date.parse(WORKER.seen_at) + seconds * 1_000)).toBe(heartbeat);
  });
});
