import { expect, test } from "vitest";
import { tickerOf } from "./useNow";

test("a render does not begin the second anew: the clock is listened to by the same function", () => {
  expect(tickerOf(1_000).subscribe).toBe(tickerOf(1_000).subscribe);
  expect(tickerOf(1_000).subscribe).not.toBe(tickerOf(15_000).subscribe);
});
