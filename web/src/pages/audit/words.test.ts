import { describe, expect, test } from "vitest";
import { detailOf, EVENTS, wordOf } from "./words";

describe("a record in words", () => {
  test("has a word for every event that we know, and shows others as they are", () => {
    for (const event of EVENTS) expect(wordOf(event).word).not.toContain("_");
    expect(wordOf("policy_changed")).toEqual({ word: "Policy changed", tone: "plain" });
    expect(wordOf("").word).toBe("?");
  });

  test.each([
    [{ action: "retry", expect: 9, reason: "" }, "action retry · expect 9"],
    [{ scopes: ["jobs:read", "admin"] }, "scopes jobs:read, admin"],
    [{ filter: { status: ["FAILED"] } }, 'filter {"status":["FAILED"]}'],
    [null, ""],
    ["text", "text"],
    [[1, 2], "[1,2]"],
  ])("tells the payload %o in a line", (payload, line) => {
    expect(detailOf({ event: "x", payload })).toBe(line);
  });

  test.each([
    [{ recipe: "trailer" }, "trailer"],
    [{ recipe: "trailer", step: "render", code: "timeout", state: "FAILED" }, "trailer at render: timeout"],
    [{ recipe: "trailer", state: "EXPIRED" }, "trailer: EXPIRED"],
  ])("tells how a job ended, %o: %s", (payload, line) => {
    expect(detailOf({ event: "job_failed", payload })).toBe(line);
  });

  test("stays short, whatever was written", () => {
    expect(detailOf({ event: "x", payload: { reason: "a".repeat(9_999) } }).length).toBe(120);
  });
});
