import { expect, test } from "vitest";
import { cancelText } from "./cancelText";

test("the effect of a cancel is told in numbers", () => {
  expect(cancelText({ running: 1, queued: 2, waiting: 1, pending: 1_200, succeeded: 9 })).toBe(
    "The job ends now: 1 running step is told to stop, 3 waiting steps are dropped, 1,200 steps are never started.",
  );
  expect(cancelText({ succeeded: 3 })).toBe("The job ends now.");
});
