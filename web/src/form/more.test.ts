import { describe, expect, test } from "vitest";
import { moreField, NO_MORE, readMore } from "./more";

describe("what is said besides the inputs", () => {
  test("is nothing when nothing is typed", () => {
    expect(readMore(NO_MORE)).toEqual({ value: {}, faults: new Map() });
  });

  test("is read", () => {
    const { value } = readMore({ key: " k ", labels: "team=docs\n\nurl=a=b \n", priority: "-5", deadline: "10m" });
    expect(value).toEqual({ key: "k", labels: { team: "docs", url: "a=b" }, priority: -5, deadline: "10m" });
  });

  test.each([
    [{ priority: "101" }, "/priority"],
    [{ priority: "x" }, "/priority"],
    [{ priority: "1.5" }, "/priority"],
    [{ labels: "team" }, "/labels"],
    [{ labels: "=docs" }, "/labels"],
    [{ key: "k".repeat(256) }, "/key"],
  ])("is refused at its field: %o", (texts, pointer) => {
    expect([...readMore({ ...NO_MORE, ...texts }).faults.keys()]).toEqual([pointer]);
  });

  test("and the server's faults find their fields", () => {
    expect(moreField("/labels/a")).toBe("/labels");
    expect(moreField("/deadline")).toBe("/deadline");
    expect(moreField("Idempotency-Key:")).toBe("/key");
    expect(moreField("/inputs/labels")).toBeNull();
  });
});
