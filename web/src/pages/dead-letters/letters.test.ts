import { describe, expect, test } from "vitest";
import { type BulkDone, doneText, type Letters, matching, versionsText } from "./letters";

const LETTERS: Letters = {
  fingerprint: "f",
  code: "TimeoutError",
  message: "payments did not answer",
  recipe: "order",
  step: "charge",
  count: 3,
  first_at: "2026-01-01T00:00:00Z",
  last_at: "2026-01-01T00:00:00Z",
  versions: [1],
  example_job: "j",
  job_ids: ["j"],
};
const DONE: BulkDone = {
  action: "redrive",
  dry_run: false,
  matched: 2,
  is_more: false,
  running_steps: 0,
  done: [],
  refused: [],
};

describe("dead letters", () => {
  test("are found by every word, and by recipe", () => {
    const all = [LETTERS, { ...LETTERS, fingerprint: "g", recipe: "refund", step: null }];
    expect(matching(all, "PAYMENTS charge", "").map((one) => one.fingerprint)).toEqual(["f"]);
    expect(matching(all, "", "refund").map((one) => one.fingerprint)).toEqual(["g"]);
    expect(matching(all, "  ", "")).toHaveLength(2);
    expect(matching(all, "nothing like it", "")).toHaveLength(0);
  });

  test.each([
    [[], "–"],
    [[3], "v3"],
    [[3, 1], "v1 and v3"],
    [[9, 1, 4, 2], "v1 to v9 (4)"],
  ])("are told with their versions %j: %s", (versions, text) => {
    expect(versionsText(versions)).toBe(text);
  });

  test("that were dealt with in part are not told as all", () => {
    const item = { job_id: "a", new_job_id: "b" };
    expect(doneText("redrive", { ...DONE, done: [item] })).toBe("1 job run again");
    const refused = [
      { job_id: "c", code: "wrong_state" },
      { job_id: "d", code: "wrong_state" },
    ];
    expect(doneText("discard", { ...DONE, done: [item, item], refused, is_more: true })).toBe(
      "2 jobs discarded; 2 could not be (wrong_state); there are more, press again for them",
    );
  });
});
