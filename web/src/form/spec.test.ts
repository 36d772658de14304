import { describe, expect, test } from "vitest";
import { DEPTH_MAX, FIELDS_MAX, type ObjectSpec, SPECS_MAX, type Spec, specOf } from "./spec";

function fieldsOf(schema: unknown): Map<string, Spec> {
  const spec = specOf(schema) as ObjectSpec;
  expect(spec.kind).toBe("object");
  return new Map(spec.fields.map((field) => [field.name, field.spec]));
}

function fieldOf(schema: unknown): Spec {
  const found = fieldsOf({ type: "object", properties: { it: schema } }).get("it");
  if (found === undefined) throw new Error("no field");
  return found;
}

describe("a schema that our recipes have", () => {
  const schema = {
    type: "object",
    properties: {
      topic: { type: "string", description: "What it is about." },
      scenes: { type: "integer", default: 4, minimum: 1 },
      style: { enum: ["noir", "pencil"], default: "noir" },
      draft: { type: "boolean", default: false },
      tags: { type: "array", items: { type: "string" }, default: [] },
      camera: { $ref: "#/$defs/Camera" },
      note: { anyOf: [{ type: "string" }, { type: "null" }], default: null },
    },
    required: ["topic", "camera"],
    additionalProperties: false,
    $defs: { Camera: { type: "object", properties: { lens: { type: "number" } }, required: ["lens"] } },
  };

  test("gives a field of its kind for each", () => {
    const kinds = [...fieldsOf(schema)].map(([name, spec]) => `${name} ${spec.kind}`);
    expect(kinds).toEqual([
      "topic text",
      "camera object",
      "scenes number",
      "style choice",
      "draft boolean",
      "tags list",
      "note text",
    ]);
  });

  test("says what is required, what is the default and what may be null", () => {
    const spec = specOf(schema) as ObjectSpec;
    expect(spec.fields.filter((f) => f.isRequired).map((f) => f.name)).toEqual(["topic", "camera"]);
    expect(spec.fields.map((f) => f.spec.fallback)).toEqual([undefined, undefined, 4, "noir", false, [], null]);
    expect(fieldsOf(schema).get("note")?.isNullable).toBe(true);
    expect(fieldsOf(schema).get("topic")?.help).toBe("What it is about.");
  });
});

test("a default stands in for what is required at the top, where the server puts it in, and not deeper", () => {
  const inner = { type: "object", properties: { a: { type: "string", default: "x" } }, required: ["a"] };
  const outer = specOf({ ...inner, properties: { ...inner.properties, it: inner } }) as ObjectSpec;
  expect(outer.fields.find((field) => field.name === "a")?.isRequired).toBe(false);
  const nested = outer.fields.find((field) => field.name === "it")?.spec as ObjectSpec;
  expect(nested.fields[0]?.isRequired).toBe(true);
});

describe("what has no field of its own is JSON", () => {
  test.each([
    ["two shapes", { oneOf: [{ type: "string" }, { type: "integer" }] }],
    ["all of several", { allOf: [{ type: "string" }] }],
    ["two types", { type: ["string", "integer"] }],
    ["free names", { type: "object", additionalProperties: { type: "string" } }],
    ["names by pattern", { type: "object", properties: { a: {} }, patternProperties: { x: {} } }],
    ["an object of nothing", { type: "object" }],
    ["a list of anything", { type: "array" }],
    ["a tuple", { type: "array", items: [{ type: "string" }] }],
    ["anything", {}],
    ["true", true],
    ["objects to choose from", { enum: [{ a: 1 }, "b"] }],
    ["a type that is not one", { type: "blob" }],
    ["a type that is no word", { type: 7 }],
    ["no schema", "string"],
    ["null", null],
    ["a reference that leads nowhere", { $ref: "#/$defs/none" }],
    ["a reference elsewhere", { $ref: "https://example.com/schema.json" }],
    ["a reference into the prototype", { $ref: "#/constructor" }],
  ])("%s", (_what, schema) => {
    expect(fieldOf(schema).kind).toBe("json");
  });
});

describe("a hostile schema", () => {
  test("that refers to itself ends", () => {
    const loop = { type: "object", properties: { next: { $ref: "#" } }, required: ["next"] };
    let spec: Spec = specOf(loop);
    let depth = 0;
    for (; spec.kind === "object"; depth++) spec = (spec.fields[0] as { spec: Spec }).spec;
    expect(spec.kind).toBe("json");
    expect(depth).toBeLessThanOrEqual(DEPTH_MAX + 1);
    expect(
      fieldsOf({ properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } }).get("a")?.kind,
    ).toBe("json");
  });

  test("that grows tenfold with every level stays small", () => {
    const properties = Object.fromEntries(Array.from({ length: 10 }, (_, i) => [`f${i}`, { $ref: "#/$defs/it" }]));
    const spec = specOf({ properties: { it: { $ref: "#/$defs/it" } }, $defs: { it: { type: "object", properties } } });
    const count = (one: Spec): number =>
      one.kind === "object" ? 1 + one.fields.reduce((sum, field) => sum + count(field.spec), 0) : 1;
    expect(count(spec)).toBeGreaterThan(SPECS_MAX);
    expect(count(spec)).toBeLessThan(20 * SPECS_MAX);
  });

  test("with too many fields, or none that can be read, is JSON", () => {
    const many = Object.fromEntries(Array.from({ length: FIELDS_MAX + 1 }, (_, i) => [`f${i}`, { type: "string" }]));
    expect(specOf({ type: "object", properties: many }).kind).toBe("json");
    expect(specOf(null).kind).toBe("json");
    expect(specOf([]).kind).toBe("json");
  });

  test("that refers to what every object has by birth refers to nothing", () => {
    expect(fieldOf({ $ref: "#/__proto__" })).toMatchObject({ kind: "json", why: expect.stringContaining("not there") });
  });

  test("with odd limits has none", () => {
    const spec = fieldOf({ type: "number", minimum: "1", maximum: null });
    expect(spec).toMatchObject({ least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY });
  });

  test("with a field called __proto__ has that field", () => {
    const schema = JSON.parse('{"type": "object", "properties": {"__proto__": {"type": "string"}}}') as unknown;
    expect([...fieldsOf(schema).keys()]).toEqual(["__proto__"]);
    expect(({} as Record<string, unknown>).type).toBeUndefined();
  });
});
