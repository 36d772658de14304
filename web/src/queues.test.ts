import { expect, test } from "vitest";
import { DEFAULT_QUEUES, queuesOf } from "./queues";

test("the queues that every worker takes from are told as one", () => {
  expect(queuesOf([...DEFAULT_QUEUES])).toEqual({ named: [], isDefault: true });
  expect(queuesOf(["films", ...DEFAULT_QUEUES])).toEqual({ named: ["films"], isDefault: true });
});

test("queues that a user named are shown", () => {
  expect(queuesOf(["main_processing"])).toEqual({ named: ["main_processing"], isDefault: false });
  expect(queuesOf(["films", "polling_watchdogs"]).named).toEqual(["films", "polling_watchdogs"]);
});
