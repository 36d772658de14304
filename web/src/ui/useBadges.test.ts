import { expect, test } from "vitest";
import { badgesOf } from "./useBadges";

test("nothing that waits is nothing to see, and so is what is not known yet", () => {
  expect(badgesOf(undefined)).toEqual({});
  expect(badgesOf({ attention: [{ kind: "old_queue", count: 3 }] })).toEqual({});
});

test("what waits for somebody is counted where it is found", () => {
  const badges = badgesOf({
    attention: [
      { kind: "waiting_person", count: 2 },
      { kind: "waiting_person", count: 1 },
      { kind: "dead_letters", count: 12 },
    ],
  });
  expect(badges["/jobs"]).toMatchObject({ count: 3, look: "waiting" });
  expect(badges["/dead-letters"]).toMatchObject({ count: 12, look: "failed" });
});
