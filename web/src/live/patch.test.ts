import { describe, expect, test } from "vitest";
import { sampleJob, sampleLines, sampleStep } from "../api/samples";
import { retryAfterMs, waitMs } from "./backoff";
import { liveOf } from "./live";
import { isOlder, type JobDocument, type JobPatch, mergeJobPatches, mergeJobs, newTo, weight } from "./patch";

const job = (id: string, seq: number) => ({ ...sampleJob({ job_id: id, seq }), activity: null, waiting_for: null });
const patch = (from: number, to: number): JobPatch => ({
  seq: to,
  job: job("a", to),
  steps: [sampleStep(1, "a", { attempt: to }), ...(to > 5 ? [sampleStep(2, "b", { attempt: to })] : [])],
  fans: { 1: { total: to, made: 0, by_status: {} } },
  events: sampleLines(from, to),
});
const numbers = (of: JobPatch | null) => of?.events.map((event) => event.seq);

describe("patches", () => {
  test("as one have the later documents and each event once", () => {
    const merged = mergeJobPatches(patch(3, 5), patch(4, 8));
    expect(numbers(merged)).toEqual([3, 4, 5, 6, 7, 8]);
    expect(merged.seq).toBe(8);
    expect(merged.steps.map((step) => step.no)).toEqual([1, 2]);
    expect(merged.fans[1]?.total).toBe(8);
    expect(mergeJobPatches(patch(3, 5), { ...patch(6, 6), job: null }).job?.seq).toBe(5);
  });

  test("tell one who stands further only the rest", () => {
    expect(numbers(newTo(5, patch(3, 8)))).toEqual([6, 7, 8]);
    expect(numbers(newTo(2, patch(3, 8)))).toEqual([3, 4, 5, 6, 7, 8]);
    expect(newTo(9, patch(3, 8))).toBeNull();
    expect(newTo(8, { ...patch(3, 8), fans: {} })).toBeNull();
  });

  test("tell how a fan-out stands though nothing else happened", () => {
    const only = { ...patch(8, 8), events: [], steps: [], job: null };
    expect(newTo(8, only)).toEqual(only);
    expect(numbers(newTo(8, mergeJobPatches(patch(3, 8), only)))).toEqual([]);
    expect(numbers(newTo(5, mergeJobPatches(patch(3, 8), only)))).toEqual([6, 7, 8]);
  });

  test("of the list keep the later document, whatever the order", () => {
    const known = new Map<string, JobDocument>();
    mergeJobs(known, [job("a", 4), job("b", 1), job("a", 3)]);
    expect(known.get("a")?.seq).toBe(4);
    expect(isOlder(job("a", 3), job("a", 4))).toBe(true);
    expect(isOlder(job("a", 4), job("a", 4))).toBe(false);
  });

  test("weigh what they tell", () => {
    expect(weight({ jobs: [], job: {} })).toBe(0);
    expect(weight({ jobs: [job("a", 1)], job: { b: patch(3, 8) } })).toBe(7);
  });
});

describe("waiting", () => {
  test("grows to a limit, and half of it is chance", () => {
    const longest = [0, 1, 2, 3, 10, 1_000].map((failures) => waitMs(failures, () => 1));
    expect(longest).toEqual([400, 1_000, 2_000, 4_000, 5_000, 5_000]);
    expect(waitMs(3, () => 0)).toBe(2_000);
  });

  test("heeds what the server asks for", () => {
    expect(retryAfterMs("7", 0)).toBe(7_000);
    expect(retryAfterMs("Thu, 01 Jan 1970 00:00:09 GMT", 4_000)).toBe(5_000);
    expect(retryAfterMs("soon", 0)).toBeNull();
    expect(retryAfterMs(null, 0)).toBeNull();
  });
});

describe("the dot", () => {
  test("says live only of what is heard", () => {
    const status = { lastAt: 5, behind: null };
    expect(liveOf({ ...status, phase: "open" }, true).state).toBe("live");
    expect(liveOf({ ...status, phase: "open", behind: 12 }, true)).toEqual({
      state: "catching-up",
      behind: 12,
      lastAt: 5,
    });
    expect(liveOf({ ...status, phase: "opening" }, true).state).toBe("catching-up");
    expect(liveOf({ ...status, phase: "opening" }, false).state).toBe("offline");
    expect(liveOf({ ...status, phase: "broken" }, true)).toEqual({ state: "offline", lastAt: 5 });
    expect(liveOf({ ...status, phase: "signed-out" }, true).state).toBe("offline");
  });
});
