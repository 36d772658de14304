import { expect, test } from "vitest";
import { rectOf } from "./camera";
import { CARD } from "./fold";
import type { Item } from "./scene";
import { buttonsOf } from "./stage";

const item = (id: number): Item => ({ id, role: "card", x: 0, y: 0, width: 176, height: 44 });

test("steps that have the focus stay buttons when they are out of view", () => {
  const [near, far] = [item(1), item(2)];
  const scene = { byId: new Map([near, far].map((one) => [one.id, one])) };
  expect(buttonsOf([near], scene, [2, 1, null, 9])).toEqual([near, far]);
  expect(buttonsOf([], scene, [null, null])).toEqual([]);
});

test("an opened fan-out is seen when its head is", () => {
  const box: Item = { ...item(1), role: "box", width: 9_000, height: 5_000 };
  expect(rectOf(box)).toEqual({ x0: 0, y0: 0, x1: CARD.width, y1: CARD.height });
});
