import { expect, test } from "vitest";
import { between, fitted, follow, pan, reveal, seen, ZOOM_MAX, ZOOM_READ, zoomAt } from "./camera";
import type { Item } from "./scene";

const SIZE = { width: 1_000, height: 800 };
const item = (x: number, y: number): Item => ({ id: x, role: "card", x, y, width: 176, height: 44 });

test("what is under the pointer stays there while zooming", () => {
  const before = { x: 30, y: -20, zoom: 0.7 };
  const after = zoomAt(before, 400, 300, 1.5);
  expect((400 - after.x) / after.zoom).toBeCloseTo((400 - before.x) / before.zoom);
  expect((300 - after.y) / after.zoom).toBeCloseTo((300 - before.y) / before.zoom);
});

test("zoom has its limits", () => {
  expect(zoomAt({ x: 0, y: 0, zoom: 1 }, 0, 0, 1_000).zoom).toBe(ZOOM_MAX);
});

test("fitting shows all of it", () => {
  const rect = { x0: -500, y0: 100, x1: 9_000, y1: 400 };
  const shown = seen(fitted(rect, SIZE), SIZE);
  expect(shown.x0).toBeLessThanOrEqual(rect.x0);
  expect(shown.x1).toBeGreaterThanOrEqual(rect.x1);
});

test("what is in view already is not moved to", () => {
  const view = { x: 0, y: 0, zoom: 1 };
  expect(reveal(view, { x0: 100, y0: 100, x1: 200, y1: 200 }, SIZE)).toBe(view);
  expect(reveal(view, { x0: 1_100, y0: 100, x1: 1_200, y1: 200 }, SIZE).x).toBeLessThan(-100);
});

test("what runs is followed: all of it if it can be read, else its middle", () => {
  expect(follow({ x: 0, y: 0, zoom: 0.1 }, [item(5_000, 0), item(5_300, 90)], SIZE).zoom).toBeGreaterThan(ZOOM_READ);
  const far = [item(0, 0), item(50_000, 0), item(50_200, 60)];
  const view = follow({ x: 0, y: 0, zoom: 0.5 }, far, SIZE);
  expect((SIZE.width / 2 - view.x) / view.zoom).toBeCloseTo(50_088);
  expect(follow(view, [], SIZE)).toBe(view);
});

test("a flight begins and ends where it should", () => {
  const [from, to] = [{ x: 0, y: 0, zoom: 0.2 }, pan({ x: 0, y: 0, zoom: 1 }, 300, -40)];
  const start = between(from, to, 0, SIZE);
  expect(start.zoom).toBeCloseTo(from.zoom);
  expect(start.x).toBeCloseTo(from.x);
  expect(between(from, to, 1, SIZE)).toBe(to);
});
