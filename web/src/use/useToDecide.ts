/** What waits for this person's vote: the navigation counts it on every page, and the inbox lists it. */
import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { ask } from "../api/client";
import type { Schemas } from "../api/schemas";
import { followJobs } from "../live";
import { useSession } from "./useSession";

export type ApprovalPage = Schemas["ApprovalPage"];

export const APPROVALS_KEY = ["approvals"] as const;
/** Jobs of other callers are not followed, so what one may decide on them is also asked for now and then. */
const EVERY_MS = 10_000;
/** A burst of changed jobs is one request. */
const SETTLE_MS = 300;

export function useToDecide(): UseQueryResult<ApprovalPage> {
  const { can } = useSession();
  return useQuery({
    queryKey: [...APPROVALS_KEY, "decide"],
    queryFn: ({ signal }) => ask<ApprovalPage>("/approvals?state=PENDING&decidable=true&limit=200", { signal }),
    enabled: can("approvals:decide"),
    refetchInterval: EVERY_MS,
  });
}

/** Read approvals again when a job changes: one may have been requested, or decided elsewhere. */
export function useLiveApprovals(): void {
  const queries = useQueryClient();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const soon = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void queries.invalidateQueries({ queryKey: APPROVALS_KEY });
      }, SETTLE_MS);
    };
    const stop = followJobs(soon, soon);
    return () => {
      clearTimeout(timer);
      stop();
    };
  }, [queries]);
}
