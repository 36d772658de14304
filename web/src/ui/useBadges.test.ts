import { expect, test } from "vitest";
import { badgesOf } from "./useBadges";

const NONE = { open: 0, running: 0, queued: 0, waiting: 0, sleeping: 0, paused: 0 };

test("nothing that waits is nothing to see, and so is what is not known yet", () => {
  expect(badgesOf(undefined)).toEqual({});
  expect(badgesOf({ attention: [{ kind: "old_queue", count: 3 }], totals: NONE })).toEqual({});
});

test("what waits for a person is counted by its page", () => {
  const badges = badgesOf({
    // One of them waits for two things.
    totals: { ...NONE, open: 9, waiting: 2 },
    attention: [
      { kind: "waiting_person", count: 2 },
      { kind: "waiting_person", count: 1 },
      { kind: "dead_letters", count: 12 },
    ],
  });
  expect(badges["/jobs"]).toMatchObject({ count: 2, look: "waiting" });
  expect(badges["/dead-letters"]).toMatchObject({ count: 12, look: "failed" });
});
