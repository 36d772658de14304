/** The processes that do the work, as the page shows them. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type RunningStep = components["schemas"]["WorkerStep"];
export type Worker = components["schemas"]["WorkerDocument"];
/** `as_of` is the server's clock, which need not be ours. */
export type WorkerList = components["schemas"]["WorkerList"];

const REFRESH_MS = 3_000;

export function useWorkers(): UseQueryResult<WorkerList> {
  return useQuery({
    queryKey: ["workers"],
    queryFn: ({ signal }) => ask<WorkerList>("/workers", { signal }),
    refetchInterval: REFRESH_MS,
    retry: false,
  });
}

export interface Grouped {
  readonly alive: readonly Worker[];
  readonly lost: readonly Worker[];
}

/** Live workers by place, and apart from them the lost workers, the latest first. */
export function grouped(workers: readonly Worker[]): Grouped {
  const place = (one: Worker): string => `${one.host}\0${String(one.pid).padStart(10, "0")}`;
  return {
    alive: workers.filter((one) => one.lost_at === null).sort((a, b) => (place(a) < place(b) ? -1 : 1)),
    lost: workers
      .filter((one) => one.lost_at !== null)
      .sort((a, b) => Date.parse(b.lost_at ?? "") - Date.parse(a.lost_at ?? "")),
  };
}

export interface Fault {
  readonly name: string;
  /** What is wrong, as a phrase that goes on from the name: "is not ready". */
  readonly state: string;
}

export interface Services {
  readonly count: number;
  readonly faults: readonly Fault[];
}

/** How the services of its process are, as its heartbeat told last; null if it has told nothing yet. */
export function servicesOf(worker: Pick<Worker, "services">): Services | null {
  if (worker.services === null) return null;
  const all = Object.entries(worker.services).map(([name, state]) => ({ name, state }));
  const faults = all.filter((one) => one.state !== "ok").sort((a, b) => (a.name < b.name ? -1 : 1));
  return { count: all.length, faults };
}

export type Heartbeat = "good" | "late" | "overdue";

/** The state of its heartbeat: late after three quarters of the lease without one, overdue after all of it. */
export function heartbeatOf(worker: Pick<Worker, "seen_at" | "lease_until">, now: number): Heartbeat {
  const [seen, until] = [Date.parse(worker.seen_at), Date.parse(worker.lease_until)];
  if (now >= until) return "overdue";
  return now - seen > (until - seen) * 0.75 ? "late" : "good";
}
