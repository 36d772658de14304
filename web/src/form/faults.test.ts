import { describe, expect, test } from "vitest";
import { draftOf } from "./draft";
import { sortFaults } from "./faults";
import { specOf } from "./spec";
import { asCli, asCurl, asPython, shell } from "./submitText";

const SPEC = specOf({
  type: "object",
  properties: {
    topic: { type: "string" },
    "a/b": { type: "string" },
    tags: { type: "array", items: { type: "string" } },
    free: {},
    camera: { type: "object", properties: { lens: { type: "number" } } },
  },
});
const DRAFT = draftOf(SPEC, { tags: ["x", "y"] });

describe("the server's faults", () => {
  test.each([
    ["/inputs/topic", "too short", "/topic"],
    ["/inputs/a~1b", "too short", "/a~1b"],
    ["/inputs/tags/1", "not of type string", "/tags/1"],
    ["/inputs/tags/7", "not there", "/tags"],
    ["/inputs/free/deep/0", "odd", "/free"],
    ["/inputs/camera", '"lens" is a required property', "/camera/lens"],
    ["/inputs", '"topic" is a required property', "/topic"],
  ])("%s is shown at its field", (pointer, message, place) => {
    expect([...sortFaults(SPEC, DRAFT, [{ pointer, message }]).faults]).toEqual([[place, message]]);
  });

  test.each([
    ["/inputs", "Additional properties are not allowed ('x' was unexpected)"],
    ["/deadline", "it must be a length of time"],
    ["/inputsx/topic", "not ours"],
    ["?version", "too small"],
    ["", "odd"],
  ])("%s has no field, and is not lost", (pointer, message) => {
    expect(sortFaults(SPEC, DRAFT, [{ pointer, message }]).others).toEqual([{ pointer, message }]);
  });

  test("two at one field are both told", () => {
    const told = ["one", "two"].map((message) => ({ pointer: "/inputs/topic", message }));
    expect(sortFaults(SPEC, DRAFT, told).faults.get("/topic")).toBe("one; two");
  });
});

describe("the same submission elsewhere", () => {
  const wanted = {
    recipe: "trailer",
    inputs: { topic: "it's $HOME", year: "2049", at: "@file", n: 3, on: true, none: null, tags: ["a"] },
    key: "k 1",
    labels: { team: "docs" },
    priority: 5,
    deadline: "10m",
  };

  test("in a shell, whatever the texts hold", () => {
    expect(asCli(wanted)).toBe(
      `windlass submit trailer --input 'topic=it'\\''s $HOME' --input 'year="2049"' --input 'at="@file"' --input n=3 ` +
        `--input on=true --input none=null --input 'tags=["a"]' --label team=docs --key 'k 1' --priority 5 --deadline 10m`,
    );
    expect(shell("a`b`;c\n")).toBe("'a`b`;c\n'");
    expect(shell("")).toBe("''");
  });

  test("without anything that hides in what is pasted", () => {
    const odd = { recipe: "r", inputs: { a: "x\u202ey", b: "🚀\n" } };
    for (const text of [asCli(odd), asCurl(odd, "http://h"), asPython(odd)]) expect(text).toMatch(/^[\n -~]*$/);
    expect(asPython(odd)).toContain('"a": "x\\u202ey", "b": "\\U0001f680\\n"');
    expect(asCli(odd)).toContain(`'a="x\\u202ey"' --input 'b="\\ud83d\\ude80\\n"'`);
  });

  test("with curl, the key in its header", () => {
    const text = asCurl(wanted, "http://127.0.0.1:8420");
    expect(text).toContain("-H 'Idempotency-Key: k 1'");
    expect(text).toContain(`"topic":"it'\\''s $HOME"`);
    expect(text).not.toContain('"key"');
  });

  test("in Python, with Python's words", () => {
    expect(asPython(wanted)).toContain(`"on": True, "none": None, "tags": ["a"]`);
    expect(asPython(wanted)).toContain(`key="k 1", labels={"team": "docs"}, priority=5, deadline="10m")`);
  });
});
