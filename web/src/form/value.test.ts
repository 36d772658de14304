import { describe, expect, test } from "vitest";
import { canHold, type Draft, draftOf, itemOf, type ObjectDraft } from "./draft";
import { type Json, type ListSpec, type ObjectSpec, specOf } from "./spec";
import { readDraft } from "./value";

const SCHEMA = {
  type: "object",
  properties: {
    topic: { type: "string", minLength: 2, maxLength: 5 },
    scenes: { type: "integer", minimum: 1, exclusiveMaximum: 10, default: 4 },
    style: { enum: ["noir", 7, true] },
    loud: { type: "boolean" },
    note: { anyOf: [{ type: "string" }, { type: "null" }], default: "none" },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    camera: { type: "object", properties: { lens: { type: "number" } }, required: ["lens"] },
    free: {},
  },
  required: ["topic"],
};
const SPEC = specOf(SCHEMA) as ObjectSpec;

function typed(fields: Record<string, string>, spec: ObjectSpec = SPEC): ObjectDraft {
  const draft = draftOf(spec) as ObjectDraft;
  const text = Object.entries(fields).map(([name, value]): [string, Draft] => [name, { kind: "text", text: value }]);
  return { kind: "object", fields: new Map([...draft.fields, ...text]) };
}

describe("what is typed", () => {
  test("is sent with its type", () => {
    const { value, faults } = readDraft(
      SPEC,
      typed({ topic: "sea", scenes: "6", style: "7", loud: "true", free: "[1]" }),
    );
    expect(faults.size).toBe(0);
    expect(value).toEqual({ topic: "sea", scenes: 6, style: 7, loud: true, free: [1], note: "none" });
  });

  test("and left out is not sent, so that the server takes its default", () => {
    const { value } = readDraft(SPEC, typed({ topic: "sea", scenes: "" }));
    expect(value).toEqual({ topic: "sea", note: "none" });
  });

  test("and cleared is null where null is meant", () => {
    expect(readDraft(SPEC, typed({ topic: "sea", note: "" })).value).toMatchObject({ note: null });
  });

  test.each([
    [{ topic: "" }, "/topic", "Required"],
    [{ topic: "a" }, "/topic", "At least 2 characters"],
    [{ topic: "abcdef" }, "/topic", "At most 5 characters; it has 6"],
    [{ scenes: "0" }, "/scenes", "At least 1"],
    [{ scenes: "10" }, "/scenes", "Less than 10"],
    [{ scenes: "2.5" }, "/scenes", "A whole number, without a fraction"],
    [{ scenes: "0x3" }, "/scenes", "Not a number"],
    [{ scenes: "Infinity" }, "/scenes", "Not a number"],
    [{ style: '"blue"' }, "/style", "Not one of the choices"],
  ])("and wrong is refused at its field: %o", (fields, pointer, message) => {
    const { faults } = readDraft(SPEC, typed({ topic: "sea", ...(fields as Record<string, string>) }));
    expect([...faults]).toEqual([[pointer, message]]);
  });

  test("counts characters as the schema does", () => {
    expect(readDraft(SPEC, typed({ topic: "👩‍🚀".slice(0, 2).repeat(5) })).faults.size).toBe(0);
  });

  test("and no number that would arrive as another one is sent", () => {
    const spec = specOf({ type: "object", properties: { it: { type: "integer" } } }) as ObjectSpec;
    expect(readDraft(spec, typed({ it: "9007199254740993" }, spec)).faults.get("/it")).toContain("exactly");
    expect(readDraft(spec, typed({ it: "1e999" }, spec)).faults.get("/it")).toContain("Too large");
  });

  test("that is not JSON is told so", () => {
    expect(readDraft(SPEC, typed({ topic: "sea", free: "{" })).faults.get("/free")).toMatch(/^Not JSON/);
  });

  test("in a list is told with its place, and the list with its length", () => {
    const list = SPEC.fields.find((f) => f.name === "tags")?.spec as ListSpec;
    const items = ["a", "", "c"].map((text) => itemOf(list, text));
    const draft: ObjectDraft = {
      kind: "object",
      fields: new Map([...typed({ topic: "sea" }).fields, ["tags", { kind: "list", items }]]),
    };
    expect([...readDraft(SPEC, draft).faults]).toEqual([
      ["/tags", "At most 2 elements"],
      ["/tags/1", "Required"],
    ]);
  });

  test("in an object that is needed only if it is given", () => {
    const camera: Draft = { kind: "object", fields: new Map([["lens", { kind: "text", text: "50" }]]) };
    const draft: ObjectDraft = {
      kind: "object",
      fields: new Map([...typed({ topic: "sea" }).fields, ["camera", camera]]),
    };
    expect(readDraft(SPEC, draft).value).toMatchObject({ camera: { lens: 50 } });
    expect(readDraft(SPEC, typed({ topic: "sea" })).value).not.toHaveProperty("camera");
  });

  test("for a field called __proto__ is sent as one", () => {
    const spec = specOf(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}')) as ObjectSpec;
    const draft: ObjectDraft = { kind: "object", fields: new Map([["__proto__", { kind: "text", text: "x" }]]) };
    expect(JSON.stringify(readDraft(spec, draft).value)).toBe('{"__proto__":"x"}');
  });
});

describe("an earlier input", () => {
  test.each<[Json]>([
    [
      {
        topic: "sea",
        scenes: 3,
        style: true,
        loud: false,
        note: null,
        tags: ["a", "b"],
        camera: { lens: 1.5 },
        free: { a: [null] },
      },
    ],
    [{ topic: "sea", note: "none", tags: [] }],
  ])("comes back as it was: %o", (value) => {
    expect(canHold(SPEC, value)).toBe(true);
    const back = readDraft(SPEC, draftOf(SPEC, value));
    expect(back.faults.size).toBe(0);
    expect(back.value).toEqual(value);
  });

  test.each<[string, Json]>([
    ["another name", { topic: "sea", extra: 1 }],
    ["another type", { topic: 7 }],
    ["a null that is not meant", { topic: null }],
    ["an empty text, which a field cannot say", { topic: "" }],
    ["a choice that is gone", { topic: "sea", style: "sepia" }],
    ["no object", [1]],
    ["more elements than there are fields for", { topic: "sea", tags: Array.from({ length: 1_000 }, () => "x") }],
  ])("that the fields would change is not put into them: %s", (_what, value) => {
    expect(canHold(SPEC, value)).toBe(false);
  });
});
