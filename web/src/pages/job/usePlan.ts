import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { RerunPlan } from "./types";

export interface Wish {
  readonly from_step?: string;
  readonly inputs?: unknown;
}

/** What running the job again would do, asked of the server and changing nothing. */
export function useRerunPlan(id: string, wish: Wish | null) {
  return useQuery({
    queryKey: ["job", id, "rerun", wish],
    queryFn: ({ signal }) =>
      ask<RerunPlan>(`/jobs/${id}/rerun`, { method: "POST", body: { ...wish, dry_run: true }, signal }),
    enabled: wish !== null,
    placeholderData: keepPreviousData,
    retry: false,
    staleTime: 0,
  });
}

export function useRetryPlan(id: string, isWanted: boolean) {
  return useQuery({
    queryKey: ["job", id, "retry"],
    queryFn: ({ signal }) => ask<RerunPlan>(`/jobs/${id}/retry`, { method: "POST", body: { dry_run: true }, signal }),
    enabled: isWanted,
    retry: false,
    staleTime: Number.POSITIVE_INFINITY,
  });
}
