import { expect, test } from "vitest";
import { chainOf, faultOf } from "./fault";

const FRAME = '  File "/app/steps.py", line 12, in draw\n    raise ValueError("no")\n';

test("an error without frames has no chain", () => {
  expect(faultOf({ code: "wait_timeout", message: "nothing was heard" })).toMatchObject({
    code: "wait_timeout",
    chain: [],
  });
  expect(faultOf(null)).toBeNull();
  expect(faultOf("odd")?.message).toBe("odd");
  expect(faultOf({})?.message).not.toBe("");
});

test("frames alone are one link without a title", () => {
  expect(chainOf(FRAME)).toEqual([{ title: "", joined: "", frames: FRAME.trimEnd() }]);
});

test("a chain is told from what was seen to what caused it", () => {
  const text = [
    `${FRAME}KeyError: 'page'`,
    "During handling of the above exception, another exception occurred:",
    `${FRAME}ValueError: no such page\nit has two lines`,
    "The above exception was the direct cause of the following exception:",
    `Traceback (most recent call last):\n${FRAME}RuntimeError: cannot draw`,
  ].join("\n\n");
  expect(chainOf(text).map((link) => [link.title, link.joined])).toEqual([
    ["RuntimeError: cannot draw", ""],
    ["ValueError: no such page\nit has two lines", "caused by"],
    ["KeyError: 'page'", "while handling"],
  ]);
});
