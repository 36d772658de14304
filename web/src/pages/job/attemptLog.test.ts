import { expect, test } from "vitest";
import { sampleLine } from "../../api/samples";
import type { EventType } from "../../api/schemas";
import { createAttemptLog } from "./attemptLog";
import type { Attempt } from "./types";

const at = (second: number): string => new Date(Date.UTC(2026, 10, 16, 0, 0, second)).toISOString();
const heard = (seq: number, type: EventType, attempt = 1) =>
  sampleLine(seq, { type, attempt, no: 3, at: at(seq), source: "w-1" });
const page = (attempt: number, more: Partial<Attempt>): Attempt => ({
  ...{ no: 3, attempt, started_at: at(0), finished_at: null, outcome: "running", worker: "w-0" },
  ...more,
});

test("an attempt is heard to begin and to end", () => {
  const log = createAttemptLog();
  log.hear(heard(1, "step.running"), "running", "w-1");
  expect(log.of(3)).toMatchObject([{ attempt: 1, outcome: "running", finished_at: null, worker: "w-1" }]);
  log.hear(heard(4, "step.parked"), "retrying");
  log.hear(heard(6, "step.running", 2), "running");
  log.hear(heard(9, "step.completed", 2), "succeeded");
  expect(log.of(3).map((one) => [one.attempt, one.outcome, one.finished_at])).toEqual([
    [1, "failed", at(4)],
    [2, "succeeded", at(9)],
  ]);
});

test("a step that is queued again has lost its worker", () => {
  const log = createAttemptLog();
  log.hear(heard(1, "step.running"), "running");
  log.hear(heard(5, "step.queued"), "queued");
  expect(log.of(3)).toMatchObject([{ outcome: "lost", finished_at: at(5) }]);
});

test("work that was handed on ends when it is answered", () => {
  const log = createAttemptLog();
  log.hear(heard(1, "step.running"), "running");
  log.hear(heard(2, "step.parked"), "waiting");
  expect(log.of(3)[0]).toMatchObject({ outcome: "waiting" });
  log.hear(heard(8, "step.completed"), "succeeded");
  expect(log.of(3)).toMatchObject([{ outcome: "succeeded", finished_at: at(8) }]);
});

test("a page that is older than what was heard does not take an end back", () => {
  const log = createAttemptLog();
  log.hear(heard(1, "step.running"), "running");
  log.hear(heard(4, "step.completed"), "succeeded");
  log.merge([page(1, {})]);
  expect(log.of(3)[0]?.outcome).toBe("succeeded");
  log.merge([page(1, { finished_at: at(4), outcome: "succeeded", worker: "w-9" })]);
  expect(log.of(3)).toMatchObject([{ worker: "w-9" }]);
});
