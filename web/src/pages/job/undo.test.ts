import { expect, test } from "vitest";
import type { UndoPlan } from "./types";
import { lookOfUndo, saidOfEffects, wordOfUndo } from "./undo";

const PLAN: UndoPlan = {
  ...{ job_id: "j", undo_job_id: "u", undo_jobs: ["u"], undo: "auto", undo_order: "completion", final: [] },
  effects: "undoing",
  steps: [
    { no: 1, step: "charge", run: "refund", needs: [], status: "COMPLETED", undo_job_id: "u" },
    { no: 0, step: "reserve", run: "release", needs: ["charge"], status: "RUNNING", undo_job_id: "u" },
  ],
};

test("the panel counts what is undone", () => {
  expect(saidOfEffects(PLAN)).toBe("1 of 2 effects undone.");
  expect(saidOfEffects({ ...PLAN, effects: "undone", steps: PLAN.steps.slice(0, 1) })).toBe("1 effect undone.");
});

test("an undo that asks says that a person must allow it", () => {
  expect(saidOfEffects({ ...PLAN, effects: "standing" })).toContain("until a person allows");
  expect(saidOfEffects({ ...PLAN, effects: "standing", undo_job_id: null })).toBe("2 effects stand.");
});

test("an effect whose undo failed or was never tried stands", () => {
  expect(["FAILED", "ABANDONED", "CANCELLED"].map((one) => wordOfUndo(one as "FAILED"))).toEqual([
    "stands",
    "stands",
    "stands",
  ]);
  expect([wordOfUndo(null), lookOfUndo(null)]).toEqual(["would run", "pending"]);
});
