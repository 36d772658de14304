import { expect, test } from "vitest";
import { capsOf, KEY_GROUPS } from "./keymap";

test("keys pressed together or one after the other are drawn apart", () => {
  expect(capsOf("mod+k", "⌘")).toEqual(["⌘", "k"]);
  expect(capsOf("shift+x", "⌘")).toEqual(["⇧", "x"]);
  expect(capsOf("g j", "⌘")).toEqual(["g", "j"]);
});

test("a plus is a key too", () => {
  expect(capsOf("+", "⌘")).toEqual(["+"]);
});

test("no key is promised twice in one place", () => {
  for (const group of KEY_GROUPS) {
    const keys = group.lines.flatMap((line) => line.keys);
    expect(new Set(keys).size, group.name).toBe(keys.length);
  }
});
