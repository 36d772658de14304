import { describe, expect, test, vi } from "vitest";
import type { JobDocument } from "../../live";
import { createListStore } from "./listStore";

const job = (id: string, seq = 1, status = "QUEUED"): JobDocument => ({ job_id: id, seq, status }) as JobDocument;
const notDone = (one: JobDocument) => one.status !== "COMPLETED";

function loaded(ids: readonly string[], hasMore = false) {
  const store = createListStore(notDone);
  store.load(ids.map((id) => job(id)), "first", hasMore); // biome-ignore format: one thought
  return store;
}

describe("the list", () => {
  test("puts new jobs in their place while no pointer is over it", () => {
    const store = loaded(["5", "3"]);
    store.patch([job("4"), job("6")]);
    expect(store.ids()).toEqual(["6", "5", "4", "3"]);
    expect(store.freshCount()).toBe(0);
  });

  test("keeps every row in its place while it is held, and counts what is new", () => {
    const store = loaded(["5", "3"]);
    const shown = store.ids();
    store.hold(true);
    store.patch([job("6"), job("4"), job("6", 2)]);
    store.patch([job("5", 2, "PROCESSING")]);
    expect(store.ids()).toBe(shown);
    expect(store.freshCount()).toBe(2);
    expect(store.get("5")?.status).toBe("PROCESSING");
    store.refresh();
    expect(store.ids()).toEqual(["6", "5", "4", "3"]);
    expect(store.get("6")?.seq).toBe(2);
  });

  test("shows what is new at once where there is nothing to move", () => {
    const store = loaded([]);
    store.hold(true);
    store.patch([job("1")]);
    expect(store.ids()).toEqual(["1"]);
  });

  test("dims a row that left the filter until it is refreshed, and lights it again if it comes back", () => {
    const store = loaded(["5", "3"]);
    store.patch([job("5", 2, "COMPLETED"), job("3", 2, "COMPLETED")]);
    expect(store.ids()).toEqual(["5", "3"]);
    expect([store.isGone("5"), store.goneCount()]).toEqual([true, 2]);
    store.patch([job("3", 3)]);
    expect(store.isGone("3")).toBe(false);
    store.refresh();
    expect(store.ids()).toEqual(["3"]);
    expect(store.goneCount()).toBe(0);
  });

  test("dims rows that the server no longer finds, and wakes them", () => {
    const store = loaded(["5", "3"]);
    const wake = vi.fn();
    store.subscribeRow("5", wake);
    store.leave(["5", "9"]);
    expect([store.isGone("5"), store.isGone("3"), store.goneCount()]).toEqual([true, false, 1]);
    expect(wake).toHaveBeenCalledTimes(1);
    store.patch([job("5", 2)]);
    expect(store.isGone("5")).toBe(false);
  });

  test("forgets a new job that leaves before it was shown", () => {
    const store = loaded(["5"]);
    store.hold(true);
    store.patch([job("6")]);
    store.patch([job("6", 2, "COMPLETED")]);
    expect(store.freshCount()).toBe(0);
  });

  test("takes no document that is older than the one it has", () => {
    const store = loaded(["5"]);
    store.patch([job("5", 9, "PROCESSING")]);
    store.patch([job("5", 8, "COMPLETED")]);
    store.load([job("5", 7, "COMPLETED"), job("2", 1)], "more", false);
    expect(store.get("5")?.seq).toBe(9);
    expect(store.ids()).toEqual(["5", "2"]);
  });

  test("leaves jobs below what was loaded to the next page", () => {
    const store = loaded(["5", "3"], true);
    store.patch([job("1"), job("4")]);
    expect(store.ids()).toEqual(["5", "4", "3"]);
    store.load([job("1", 2)], "more", false);
    expect(store.ids()).toEqual(["5", "4", "3", "1"]);
  });

  test("merges what was told before the first page came", () => {
    const store = createListStore(notDone);
    store.patch([job("9"), job("5", 4, "PROCESSING")]);
    expect([store.ids(), store.freshCount()]).toEqual([[], 0]);
    store.load([job("5", 3), job("4")], "first", false);
    expect(store.ids()).toEqual(["9", "5", "4"]);
    expect(store.get("5")?.status).toBe("PROCESSING");
  });

  test("wakes only the row that changed, and the list only when rows come or go", () => {
    const store = loaded(["5", "3"]);
    const [row, other, list] = [vi.fn(), vi.fn(), vi.fn()];
    const stop = store.subscribeRow("5", row);
    store.subscribeRow("3", other);
    store.subscribe(list);
    store.patch([job("5", 2, "PROCESSING")]);
    expect([row.mock.calls.length, other.mock.calls.length, list.mock.calls.length]).toEqual([1, 0, 0]);
    stop();
    store.patch([job("5", 3, "COMPLETED")]);
    expect([row.mock.calls.length, list.mock.calls.length]).toEqual([1, 1]);
    store.remove("3");
    expect(store.ids()).toEqual(["5"]);
  });
});
