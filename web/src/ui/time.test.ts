import { expect, test } from "vitest";
import { absolute, lasted, relative } from "./time";

const NOW = Date.UTC(2026, 10, 16, 6, 41, 7, 250);
const [S, M, H, D] = [1_000, 60_000, 3_600_000, 86_400_000];

test.each([
  [0, "now"],
  [999, "now"],
  [S, "1s ago"],
  [59.9 * S, "59s ago"],
  [M, "1m ago"],
  [59.9 * M, "59m ago"],
  [47 * H, "47h ago"],
  [2 * D, "2d ago"],
  [-90 * S, "in 1m"],
])("%d ms before now is %s", (gap, text) => {
  expect(relative(NOW - gap, NOW)).toBe(text);
});

test.each([
  [-5, "0 ms"],
  [0, "0 ms"],
  [38.4, "38 ms"],
  [999.6, "999 ms"],
  [4_290, "4.2 s"],
  [9_999, "9.9 s"],
  [59_999, "59 s"],
  [67 * S, "1 m 07 s"],
  [59 * M + 59 * S + 999, "59 m 59 s"],
  [2 * H + 5 * M, "2 h 05 m"],
  [3 * D + 4.5 * H, "3 d 4 h"],
  [Number.NaN, "–"],
])("%d ms is %s", (ms, text) => {
  expect(lasted(ms)).toBe(text);
});

test("a moment always says its zone", () => {
  expect(absolute(NOW, "UTC")).toBe("16 Nov 2026, 06:41:07.250 UTC");
  expect(absolute(NOW, "Asia/Tokyo")).toBe("16 Nov 2026, 15:41:07.250 GMT+9");
});

test("a zone that this browser does not know is as if none was chosen", () => {
  expect(absolute(NOW, "Mars/Olympus")).toBe(absolute(NOW, "local"));
});
