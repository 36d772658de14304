import { describe, expect, test } from "vitest";
import { moneyText, nextRequest, type Provider, rateText, stateOf } from "./providers";

const PROVIDER: Provider = {
  name: "studio",
  concurrency: 4,
  rate: 5,
  held: 0,
  waiting: 0,
  holders: [],
  first: null,
  breaker: "closed",
  failures: 0,
  error: null,
  paused_until: null,
  free_at: null,
};
const NOW = Date.parse("2026-01-01T00:00:00Z");

describe("a provider", () => {
  test.each<[Partial<Provider>, string]>([
    [{}, "Ready"],
    [{ held: 4, waiting: 1 }, "Full"],
    [{ held: 4 }, "Ready"],
    [{ paused_until: "2026-01-01T00:01:00Z", held: 4, waiting: 1 }, "Busy"],
    [{ paused_until: "2025-12-31T00:00:00Z" }, "Ready"],
    [{ breaker: "open", paused_until: "2026-01-01T00:01:00Z" }, "Breaker open"],
    [{ failures: 2, held: 4, waiting: 1 }, "Failing"],
    [{ breaker: "half_open" }, "Half open"],
    [{ breaker: JSON.parse('"unheard of"') }, "unheard of"],
  ])("with %o is told as %s", (part, word) => {
    expect(stateOf({ ...PROVIDER, ...part }, NOW).word).toBe(word);
  });

  test("may be asked when it is neither busy nor out of breath", () => {
    expect(nextRequest({ paused_until: null, free_at: "2025-12-31T23:59:59Z" }, NOW)).toBeNull();
    const [free_at, paused_until] = ["2026-01-01T00:00:01Z", "2026-01-01T00:01:00Z"];
    expect(nextRequest({ paused_until, free_at }, NOW)).toBe(Date.parse(paused_until));
    expect(nextRequest({ paused_until: null, free_at }, NOW)).toBe(Date.parse(free_at));
  });

  test.each([
    [5, "5 /s"],
    [1_500, "1,500 /s"],
    [0.5, "30 /min"],
    [0.001, "3.6 /h"],
    [0, "no limit"],
    [Number.POSITIVE_INFINITY, "no limit"],
  ])("takes %s a second: %s", (rate, text) => {
    expect(rateText(rate)).toBe(text);
  });
});

describe("money", () => {
  test.each([
    ["0", "0.00"],
    ["1234567.5", "1,234,567.50"],
    ["0.000125", "0.000125"],
    ["12.500000", "12.50"],
    ["12345678901234567890.01", "12,345,678,901,234,567,890.01"],
    ["odd", "odd"],
  ])("%s is written %s", (amount, text) => {
    expect(moneyText(amount)).toBe(text);
  });
});
