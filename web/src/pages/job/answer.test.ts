import { describe, expect, test } from "vitest";
import { type Awaited, draftOf, warningsOf } from "./answer";

const awaited = (more: Partial<Awaited> = {}): Awaited => ({
  event: "approved",
  match: {},
  keys: [],
  given_to: [],
  is_condition: false,
  ...more,
});
const draft = (more: Partial<Awaited>): unknown => JSON.parse(draftOf(awaited(more), "ada"));

describe("the first draft of an answer", () => {
  test("has what must match, what the recipe reads, and who says it", () => {
    expect(draft({ match: { topic: "tides" }, keys: ["by", "note"] })).toEqual({ topic: "tides", by: "ada", note: "" });
    expect(draft({ keys: ["topic"], match: { topic: "tides" } })).toEqual({ topic: "tides" });
    expect(draft({ keys: ["note"], given_to: ["publish"] })).toEqual({ note: "", by: "ada" });
  });

  test("says who says it where nothing is known of what is read", () => {
    expect(draft({ given_to: ["publish"] })).toEqual({ by: "ada" });
    expect(draft({})).toEqual({ by: "ada" });
  });

  test("is true where a step runs only if it is", () => {
    expect(draft({ is_condition: true, given_to: ["publish"] })).toBe(true);
  });

  test("is valid once its gaps are filled", () => {
    const wanted = awaited({ match: { topic: "tides", pages: [1, { a: 2 }] }, keys: ["by"] });
    expect(warningsOf(wanted, JSON.parse(draftOf(wanted, "ada")))).toEqual([]);
  });
});

describe("an answer is warned about", () => {
  test("that lacks what the recipe reads", () => {
    expect(warningsOf(awaited({ keys: ["by"] }), true)).toEqual(["The recipe reads “by”, and this does not have it"]);
    expect(warningsOf(awaited({ keys: ["by", "note"] }), [])).toEqual([
      "The recipe reads “by”, “note”, and this does not have them",
    ]);
    expect(warningsOf(awaited({ keys: ["by", "note"] }), { by: "", note: "" })).toEqual([
      "“by”, “note” are still empty",
    ]);
  });

  test("that no step would take", () => {
    const wanted = awaited({ match: { topic: "tides" } });
    expect(warningsOf(wanted, { topic: "whales" })).toEqual(['The step only takes “topic” = "tides"']);
    expect(warningsOf(wanted, null)).toHaveLength(1);
    expect(warningsOf(wanted, { topic: "tides", more: 1 })).toEqual([]);
    const deep = awaited({ match: { at: { a: 1, b: [1] } } });
    expect(warningsOf(deep, { at: { b: [1], a: 1 } })).toEqual([]);
    expect(warningsOf(deep, { at: { b: [2], a: 1 } })).toHaveLength(1);
  });

  test("that is no condition where one is needed", () => {
    expect(warningsOf(awaited({ is_condition: true }), { by: "ada" })).toHaveLength(1);
    expect(warningsOf(awaited({ is_condition: true }), false)).toEqual([]);
  });
});
