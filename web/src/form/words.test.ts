import { describe, expect, test } from "vitest";
import { type ObjectSpec, specOf } from "./spec";
import { choiceText, halvesOf, inputsText, kindText } from "./words";

function fieldsOf(properties: unknown) {
  return (specOf({ type: "object", properties }) as ObjectSpec).fields;
}

describe("a field in words", () => {
  test.each([
    [{ type: "integer", minimum: 1, exclusiveMaximum: 9 }, "whole number from 1 less than 9"],
    [{ type: "number" }, "number"],
    [{ type: "string", format: "date-time" }, "date-time"],
    [{ anyOf: [{ type: "boolean" }, { type: "null" }] }, "yes or no or none"],
    [{}, "JSON"],
  ])("%o is %s", (schema, text) => {
    const [field] = fieldsOf({ it: schema });
    expect(field && kindText(field.spec)).toBe(text);
  });

  test("stands beside another short one, and never alone in half a row", () => {
    const [short, long] = [{ type: "number" }, { type: "string" }];
    expect([...halvesOf(fieldsOf({ a: short, b: short, c: short, d: long, e: short, f: short }))]).toEqual([
      "a",
      "b",
      "e",
      "f",
    ]);
    expect(halvesOf([]).size).toBe(0);
  });
});

describe("a value in words", () => {
  test.each([
    [true, "yes"],
    [null, "none"],
    ["", "empty"],
    [{ a: 1 }, '{"a":1}'],
    ["x".repeat(100), `${"x".repeat(60)}…`],
  ])("%o is %s", (value, text) => {
    expect(choiceText(value)).toBe(text);
  });

  test("of inputs is told by name", () => {
    expect(inputsText({ topic: "sea", n: 4 })).toBe("topic sea · n 4");
    expect(inputsText({})).toBe("no inputs");
    expect(inputsText(undefined)).toBe("none");
    expect(inputsText([1])).toBe("[1]");
  });
});
