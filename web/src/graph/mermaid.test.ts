import { expect, test } from "vitest";
import { fanGraph, graph, step } from "./factory";
import { mermaidOf } from "./mermaid";
import { createGraphStore } from "./store";

test("a graph reads as Mermaid, with its states", () => {
  const structure = graph([step(1, { label: "fetch", look: "succeeded" }), step(2, { label: "send" })], [[1, 2]]);
  expect(mermaidOf(structure, createGraphStore(structure.nodes), "right")).toBe(
    [
      "flowchart LR",
      '  s1["fetch"]',
      '  s2["send"]',
      "  s1 --> s2",
      "  classDef succeeded fill:#ddf3e6,stroke:#0f6639",
      "  class s1 succeeded",
      "",
    ].join("\n"),
  );
});

test("fan-outs are folded", () => {
  const structure = fanGraph(40);
  const text = mermaidOf(structure, createGraphStore(structure.nodes), "down");
  expect(text).toContain('s1[["step-1 ×40"]]');
  expect(text.split("\n")).toHaveLength(7);
});

test("no label can break out of its quotes", () => {
  const structure = graph([step(1, { label: 'a"]; x["#<b>' })], []);
  expect(mermaidOf(structure, createGraphStore(structure.nodes), "down")).toContain(
    's1["a#quot;]; x[#quot;#35;#lt;b>"]',
  );
});
