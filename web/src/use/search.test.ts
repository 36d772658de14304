import { expect, test } from "vitest";
import { readSearch, writeSearch } from "./search";

const FIRST = { q: "", state: [] as string[], page: 1, open: false, tab: "graph" };

test("an empty address has the first values", () => {
  expect(readSearch(FIRST, "")).toEqual(FIRST);
});

test("what was written is read again", () => {
  const values = { q: "a&b=c ü +", state: ["failed", "a,b"], page: 3, open: true, tab: "steps" };
  const text = writeSearch(FIRST, "", values);
  expect(readSearch(FIRST, text)).toEqual(values);
});

test("a value that cannot be read is as if it were not there", () => {
  expect(readSearch(FIRST, "?page=soon&open=maybe")).toEqual(FIRST);
  expect(readSearch(FIRST, "?page=")).toEqual(FIRST);
  expect(readSearch(FIRST, "?page=Infinity")).toEqual(FIRST);
});

test("a first value is not written, and going back to it takes it out", () => {
  expect(writeSearch(FIRST, "", { page: 1, state: [] })).toBe("");
  expect(writeSearch(FIRST, "?page=4&q=x", { page: 1 })).toBe("?q=x");
  expect(writeSearch(FIRST, "?state=a&state=b", { state: [] })).toBe("");
});

test("unknown parameters stay in the address", () => {
  expect(writeSearch(FIRST, "?theirs=1&page=2", { page: 3 })).toBe("?theirs=1&page=3");
  expect(writeSearch(FIRST, "?theirs=1", JSON.parse('{ "theirs": "2" }'))).toBe("?theirs=1");
});

test("an empty list differs from a list that was never chosen", () => {
  const first = { state: ["running"] };
  expect(readSearch(first, "")).toEqual({ state: ["running"] });
  expect(readSearch(first, "?state=")).toEqual({ state: [] });
  expect(readSearch(first, writeSearch(first, "", { state: [] }))).toEqual({ state: [] });
});
