import { expect, test, vi } from "vitest";
import { step } from "./factory";
import { createGraphStore } from "./store";

test("a patch wakes the steps it names, and no other", () => {
  const store = createGraphStore([step(1), step(2)]);
  const [one, two, all] = [vi.fn(), vi.fn(), vi.fn()];
  store.subscribe(1, one);
  store.subscribe(2, two);
  store.subscribeAll(all);
  store.patch([
    { id: 1, look: "running" },
    { id: 1, look: "succeeded" },
  ]);
  expect(one).toHaveBeenCalledTimes(1);
  expect(two).not.toHaveBeenCalled();
  expect(all).toHaveBeenCalledTimes(1);
  expect(store.get(1)?.look).toBe("succeeded");
});

test("who has left is not woken", () => {
  const store = createGraphStore([step(1)]);
  const card = vi.fn();
  store.subscribe(1, card)();
  store.patch([{ id: 1, look: "running" }]);
  expect(card).not.toHaveBeenCalled();
});

test("counts follow the steps", () => {
  const store = createGraphStore([step(1), step(2)]);
  store.patch([{ id: 2, look: "failed" }]);
  expect(store.counts()).toEqual({ pending: 1, failed: 1 });
});

test("a fan-out counts as its children", () => {
  const fan = step(1, { fan: { total: 3, by: { pending: 3 } } });
  const store = createGraphStore([fan, step(2, { parent: 1 }), step(3, { parent: 1 }), step(4, { parent: 1 })]);
  store.patch([{ id: 3, look: "running" }]);
  store.patch([{ id: 3, look: "succeeded" }]);
  expect(store.counts()).toEqual({ pending: 2, running: 0, succeeded: 1 });
  expect(store.get(1)?.fan?.by).toEqual({ pending: 2, running: 0, succeeded: 1 });
});

test("a fan-out without children counts as itself, also if it can never have any", () => {
  const store = createGraphStore([step(1, { fan: { total: null, by: {} } }), step(2)]);
  expect(store.counts()).toEqual({ pending: 2 });
  store.patch([
    { id: 1, look: "cancelled" },
    { id: 2, look: "cancelled" },
  ]);
  expect(store.counts()).toEqual({ pending: 0, cancelled: 2 });
});

test("a fan-out that gets children counts as them alone", () => {
  const store = createGraphStore([step(1, { fan: { total: null, by: {} } })]);
  store.patch([{ id: 1, look: "waiting", fan: { total: 2, by: { queued: 2 } } }]);
  expect(store.counts()).toEqual({ pending: 0, queued: 2 });
  store.patch([{ id: 1, look: "succeeded", fan: { total: 2, by: { succeeded: 2 } } }]);
  expect(store.counts()).toEqual({ pending: 0, queued: 0, succeeded: 2 });
});

test("children that were never loaded count for their fan-out too", () => {
  const store = createGraphStore([step(1, { fan: { total: 2, by: { pending: 2 } } })]);
  store.patch([{ id: 8, parent: 1, look: "running" }]);
  store.patch([{ id: 8, parent: 1, look: "failed" }]);
  expect(store.get(1)?.fan?.by).toEqual({ pending: 1, running: 0, failed: 1 });
});

test("what a server says of a fan-out replaces what was counted", () => {
  const store = createGraphStore([step(1), step(2)]);
  store.patch([{ id: 1, fan: { total: 5, by: { succeeded: 5 } } }]);
  expect(store.counts()).toEqual({ pending: 1, succeeded: 5 });
});

test("steps that are known keep what happened to them when they are added again", () => {
  const store = createGraphStore([step(1)]);
  store.patch([{ id: 1, look: "failed" }]);
  store.add([step(1), step(2)]);
  expect(store.get(1)?.look).toBe("failed");
  expect(store.counts()).toEqual({ pending: 1, failed: 1 });
});

test("a patch of an unknown step changes nothing", () => {
  const store = createGraphStore([step(1)]);
  store.patch([{ id: 9, look: "failed" }]);
  expect(store.counts()).toEqual({ pending: 1 });
});
