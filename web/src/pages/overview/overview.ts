/** What the overview asks for, and what is worked out from it. */
import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type Attention = components["schemas"]["AttentionDocument"];
export type QueueState = components["schemas"]["QueueDocument"];
export type RecipeState = components["schemas"]["RecipeRate"];
export type Throughput = components["schemas"]["ThroughputDocument"];
export type Overview = components["schemas"]["OverviewDocument"];

const REFRESH_MS = 4_000;

/** Asked again while the tab is visible: a hidden tab asks nothing. */
export function useOverview(): UseQueryResult<Overview> {
  return useQuery({
    queryKey: ["overview"],
    queryFn: ({ signal }) => ask<Overview>("/overview", { signal }),
    refetchInterval: REFRESH_MS,
    placeholderData: keepPreviousData,
  });
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0);
}

/** Whether the overview has nothing to tell. Then it is worth asking whether there ever was a job. */
export function isQuiet(overview: Overview): boolean {
  const { throughput, totals, recipes, attention } = overview;
  const hasEnded = sum(throughput.completed) + sum(throughput.failed) > 0;
  return !hasEnded && totals.open === 0 && recipes.length === 0 && attention.every((one) => one.kind === "no_workers");
}

/** The share of jobs that succeeded, or null before any has ended. */
export function successOf({ completed, failed }: Pick<RecipeState, "completed" | "failed">): number | null {
  const ended = completed + failed;
  return ended === 0 ? null : completed / ended;
}

/** "100 %" is only said of all, and "0 %" only of none. */
export function percentText(share: number | null): string {
  if (share === null) return "–";
  if (share === 1 || share === 0) return `${share * 100} %`;
  const percent = share * 100;
  return `${Math.min(99.9, Math.max(0.1, percent)).toFixed(percent > 10 && percent < 90 ? 0 : 1)} %`;
}

/** A link of the server as the router wants it: without the console's own path in front. */
export function consolePath(link: string): string {
  const path = link.startsWith("/console/") ? link.slice("/console".length) : link;
  // No link leads away from the console, of any origin.
  return /^\/(?![/\\])/.test(path) ? path : "/";
}
