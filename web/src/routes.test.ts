import { expect, test } from "vitest";
import { PLACES } from "./places";
import { patternOf, ROUTES } from "./routes";

const pathsOf = (path: string): string[] => ROUTES.map((one) => one.path).filter((one) => patternOf(one).test(path));

test.each([
  ["/", "/"],
  ["/jobs", "/jobs"],
  ["/jobs/", "/jobs"],
  ["/jobs/01a1e247-f915-7792-be90-84c786ed2e37", "/jobs/:id"],
  ["/recipes/nightly%20report", "/recipes/:name"],
])("%s is the page %s, and no other", (path, page) => {
  expect(pathsOf(path)).toEqual([page]);
});

test.each(["/job", "/jobs/a/b", "/nowhere", "/xjobs"])("%s is no page", (path) => {
  expect(pathsOf(path)).toEqual([]);
});

test("every place that one can go to has a page", () => {
  for (const place of PLACES) expect(pathsOf(place.path)).toEqual([place.path]);
});
