import { useQuery } from "@tanstack/react-query";
import { ask } from "../api/client";
import type { AttentionKind, Schemas } from "../api/schemas";
import type { Look } from "../state";
import { useToDecide } from "../use/useToDecide";

export interface Badge {
  readonly count: number;
  readonly look: Look;
  readonly says: string;
}

type Overview = Pick<Schemas["OverviewDocument"], "totals"> & {
  readonly attention: readonly Pick<Schemas["AttentionDocument"], "kind" | "count">[];
};

const EVERY_MS = 30_000;

/** Counts of what needs a person, by page: the navigation shows them on every page. */
export function useBadges(): Readonly<Record<string, Badge>> {
  const approvals = useToDecide();
  return badgesOf(useOverviewData(), approvals.data?.items.length);
}

/** The overview as it was last read: every page has it, for its badges. */
export function useOverviewData(): Overview | undefined {
  const { data } = useQuery({
    queryKey: ["overview"],
    queryFn: () => ask<Overview>("/overview"),
    refetchInterval: EVERY_MS,
  });
  return data;
}

export function badgesOf(overview: Overview | undefined, approvals = 0): Readonly<Record<string, Badge>> {
  const sum = (kind: AttentionKind): number =>
    overview?.attention.filter((one) => one.kind === kind).reduce((all, one) => all + one.count, 0) ?? 0;
  // Not the sum of what is waited for: a job may wait for several things.
  const [waiting, dead] = [overview?.totals.waiting ?? 0, sum("dead_letters")];
  return {
    ...(waiting > 0 && { "/jobs": { count: waiting, look: "waiting", says: "wait for a person" } }),
    ...(approvals > 0 && { "/approvals": { count: approvals, look: "waiting", says: "approvals to decide" } }),
    ...(dead > 0 && { "/dead-letters": { count: dead, look: "failed", says: "dead letters" } }),
  };
}
