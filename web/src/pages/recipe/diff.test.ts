import { describe, expect, test } from "vitest";
import { diffOf } from "./diff";
import type { RecipeDocument, RecipeNode } from "./plan";

const NODE: RecipeNode = {
  step: "draw",
  kind: "task",
  run: "draw",
  needs: [],
  queue: "main",
  when: null,
  each: null,
  arguments: { a: 1, b: 2 },
  timeout_s: 120,
  retry: { max_attempts: 3 },
  provider: "",
  concurrency: null,
  limit: 1,
  takes: 1,
  places: 1,
  cost: null,
  wait_s: null,
  ttl_s: null,
  approval: null,
  undo: null,
  effect: null,
  savepoint: false,
  undoes: null,
  follows: [],
};
const RECIPE: RecipeDocument = {
  name: "r",
  description: "",
  plan: "p",
  nodes: [NODE],
  edges: [],
  inputs_schema: { type: "object", properties: { topic: { type: "string" } }, required: ["topic"] },
  output: "x",
  on_failure: "finish",
};

describe("two versions of a recipe", () => {
  test("that are the same have no difference, in whatever order they are written", () => {
    const again = { ...RECIPE, nodes: [{ ...NODE, arguments: { b: 2, a: 1 } }] };
    expect(diffOf(RECIPE, again)).toEqual([]);
  });

  test("differ by steps that came and went, and by what changed of those that stayed", () => {
    const after = {
      ...RECIPE,
      nodes: [
        { ...NODE, timeout_s: 60, when: "steps.plan.outputs.good", needs: ["plan"] },
        { ...NODE, step: "plan" },
      ],
    };
    expect(diffOf(RECIPE, after)).toEqual([
      {
        kind: "changed",
        what: "step draw",
        lines: ["needs: nothing → plan", "only if: always → plan.good", "timeout: 2 m 00 s → 1 m 00 s"],
      },
      { kind: "added", what: "step plan", lines: [] },
    ]);
    expect(diffOf(after, RECIPE).map((one) => `${one.kind} ${one.what}`)).toEqual([
      "changed step draw",
      "removed step plan",
    ]);
  });

  test("differ by an input that is no more needed", () => {
    const after = { ...RECIPE, inputs_schema: { ...RECIPE.inputs_schema, required: [] } };
    expect(diffOf(RECIPE, after).map((one) => one.what)).toEqual(["input topic"]);
  });

  test("differ by what they give", () => {
    expect(diffOf(RECIPE, { ...RECIPE, output: null })).toEqual([
      { kind: "changed", what: "output", lines: ["x → none"] },
    ]);
  });

  test("are told in lines that can be read, whatever they hold", () => {
    const [change] = diffOf(RECIPE, { ...RECIPE, output: "x".repeat(9_999) });
    expect(change?.lines[0]?.length).toBeLessThan(250);
    expect(diffOf({ ...RECIPE, inputs_schema: { properties: "odd" } }, RECIPE).map((one) => one.kind)).toEqual([
      "added",
    ]);
  });
});
