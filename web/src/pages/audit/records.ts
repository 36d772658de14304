/** Records of the audit, page by page, and whether the chain holds. */
import { type InfiniteData, type UseInfiniteQueryResult, useInfiniteQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type AuditRecord = components["schemas"]["RecordDocument"];
export type Verdict = components["schemas"]["Verdict"];

export interface RecordPage {
  readonly items: readonly AuditRecord[];
  readonly next: number | null;
}

export const FIRST = { caller: "", event: "", job: "", since: "", until: "" };
export type Filter = typeof FIRST;

const PAGE = 100;
const REFRESH_MS = 10_000;
const UUID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** The query of a page, the newest first; what cannot be sent is left out and told by `faultsOf`. */
export function queryOf(filter: Filter, before: number | null, now: number, limit = PAGE): string {
  const query = new URLSearchParams({ order: "desc", limit: String(limit) });
  if (filter.caller.trim() !== "") query.set("caller", filter.caller.trim());
  if (filter.event !== "") query.set("event", filter.event);
  if (UUID.test(filter.job.trim())) query.set("job_id", filter.job.trim());
  const [since, until] = [instantOf(filter.since, now), instantOf(filter.until, now)];
  if (since !== null) query.set("since", since);
  if (until !== null) query.set("until", until);
  if (before !== null) query.set("before", String(before));
  return query.toString();
}

export function faultsOf(filter: Filter, now: number): { readonly job?: string; readonly since?: string } {
  return {
    ...(filter.job.trim() !== "" && !UUID.test(filter.job.trim()) ? { job: "Not a job's id" } : {}),
    ...(filter.since !== "" && instantOf(filter.since, now) === null ? { since: "Not an age" } : {}),
  };
}

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `15m`, `24h`, `7d` before now, or a time; null when it is neither. */
export function instantOf(text: string, now: number): string | null {
  const age = /^(\d{1,6})([mhd])$/.exec(text.trim());
  const at = age ? now - Number(age[1]) * (UNITS[age[2] ?? ""] ?? 0) : Date.parse(text);
  return Number.isNaN(at) || Math.abs(at) > 8.64e15 ? null : new Date(at).toISOString();
}

export function useRecords(filter: Filter): UseInfiniteQueryResult<InfiniteData<RecordPage>> {
  return useInfiniteQuery({
    queryKey: ["audit", filter],
    queryFn: ({ pageParam, signal }) => ask<RecordPage>(`/audit?${queryOf(filter, pageParam, Date.now())}`, { signal }),
    initialPageParam: null as number | null,
    getNextPageParam: (page) => page.next,
    // Kept fresh while only the newest page is shown; older pages stay as they are.
    refetchInterval: (query) => (query.state.data?.pages.length === 1 ? REFRESH_MS : false),
    retry: false,
  });
}

/** Go through the whole chain, as far as a request goes each time. */
export async function verifyChain(onStep: (checked: number) => void, signal: AbortSignal): Promise<Verdict> {
  let [checked, after] = [0, 0];
  for (;;) {
    const verdict = await ask<Verdict>(`/audit/verify?after=${after}`, { signal });
    checked += verdict.checked;
    onStep(checked);
    if (!verdict.is_good || verdict.next === null || verdict.next <= after) return { ...verdict, checked };
    after = verdict.next;
  }
}
