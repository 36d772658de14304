import { expect, test } from "vitest";
import { nameOf, resolve } from "./keys";

const PLAIN = { metaKey: false, ctrlKey: false, altKey: false, shiftKey: false };
const one = (): void => undefined;
const two = (): void => undefined;

test.each([
  [{ key: "j" }, "j"],
  [{ key: "X", shiftKey: true }, "shift+x"],
  [{ key: "X" }, "x"],
  [{ key: "?", shiftKey: true }, "?"],
  [{ key: "k", ctrlKey: true }, "mod+k"],
  [{ key: "k", metaKey: true }, "mod+k"],
  [{ key: "Enter", shiftKey: true }, "shift+Enter"],
  [{ key: "c", ctrlKey: true, shiftKey: true }, "mod+shift+c"],
])("%j is %s", (pressed, name) => {
  expect(nameOf({ ...PLAIN, ...pressed })).toBe(name);
});

test("what was shown last wins", () => {
  expect(resolve([{ j: one }, { j: two }], "", "j")).toBe(two);
  expect(resolve([{ j: one }, { j: undefined }], "", "j")).toBe(one);
});

test("two keys one after the other", () => {
  const all = [{ "g j": one, j: two }];
  expect(resolve(all, "", "g")).toBe("prefix");
  expect(resolve(all, "g", "j")).toBe(one);
  expect(resolve(all, "", "j")).toBe(two);
});

test("a key that goes on nothing is taken for itself", () => {
  expect(resolve([{ "g j": one, k: two }], "g", "k")).toBe(two);
  expect(resolve([{ "g j": one }], "g", "z")).toBeUndefined();
});

test("a page may have a key that begins what others end, and then it acts at once", () => {
  expect(resolve([{ "g j": one }, { g: two }], "", "g")).toBe(two);
});
