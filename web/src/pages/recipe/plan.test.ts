import { describe, expect, test } from "vitest";
import { planOf, type RecipeNode } from "./plan";
import { expressionText, firstParagraph, retryText, stepFacts } from "./words";

const NODE: RecipeNode = {
  step: "draw",
  kind: "task",
  run: "draw",
  needs: [],
  queue: "main",
  when: null,
  each: null,
  arguments: {},
  timeout_s: 120,
  retry: { max_attempts: 3, base_s: 1, factor: 2, cap_s: 60, jitter: 0.25 },
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

describe("a recipe as a graph", () => {
  test("has its steps planned, and its fan-outs of unknown size", () => {
    const nodes = [NODE, { ...NODE, step: "each", each: "steps.draw.outputs" }];
    const { nodes: drawn, edges } = planOf({ nodes, edges: [{ source: "draw", target: "each" }] });
    expect(edges).toEqual([[0, 1]]);
    expect(drawn.map((one) => [one.look, one.meta, one.fan?.total])).toEqual([
      ["pending", "main", undefined],
      ["pending", "for each of draw", null],
    ]);
  });

  test("leaves out edges to steps that are not there", () => {
    expect(planOf({ nodes: [NODE], edges: [{ source: "draw", target: "gone" }] }).edges).toEqual([]);
  });
});

describe("what decides about a step", () => {
  test("is told without what every expression has", () => {
    expect(expressionText("steps.write_script.outputs.score > 5 && !inputs.quiet")).toBe(
      "write_script.score > 5 && !quiet",
    );
  });

  test("says how often and how soon it is tried again", () => {
    expect(retryText(NODE)).toBe("3 attempts, after 1.0 s up to 1 m 00 s");
    expect(retryText({ retry: { max_attempts: 1 } })).toBe("once");
    expect(retryText({ retry: {} })).toBe("once");
  });

  test("leaves out what is as usual, and what a step of its kind has not", () => {
    expect(stepFacts(NODE).map(([word]) => word)).toEqual(["runs", "queue", "timeout", "retries"]);
    expect(stepFacts({ ...NODE, kind: "event", run: "approved", wait_s: 60 })).toEqual([
      ["waits for event", "approved"],
      ["waits at most", "1 m 00 s"],
    ]);
    expect(stepFacts({ ...NODE, kind: JSON.parse('"unheard of"') })[0]).toEqual(["unheard of", "draw"]);
  });
});

describe("a recipe's description", () => {
  test("is shown up to its first empty line", () => {
    expect(firstParagraph("Makes a film\nof a topic.\n\nOne scene at a time.")).toBe("Makes a film of a topic.");
    expect(firstParagraph("")).toBe("");
  });
});
