import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask, Problem } from "../../api/client";
import type { components } from "../../api/types.gen";
import type { RecipeDocument } from "./plan";

export type RecentInput = components["schemas"]["RecentInput"];

/** One version of a recipe; 0 is the newest. */
export function useRecipe(name: string, version: number): UseQueryResult<RecipeDocument> {
  const query = version > 0 ? `?version=${version}` : "";
  return useQuery({
    queryKey: ["recipes", name, "version", version],
    queryFn: ({ signal }) => ask<RecipeDocument>(`/recipes/${encodeURIComponent(name)}${query}`, { signal }),
    staleTime: 30_000,
    retry: (count, error) => count < 1 && !(error instanceof Problem && error.body.status < 500),
  });
}

export function useRecentInputs(name: string): UseQueryResult<readonly RecentInput[]> {
  return useQuery({
    queryKey: ["recipes", name, "inputs"],
    queryFn: async ({ signal }) =>
      (await ask<{ items: RecentInput[] }>(`/recipes/${encodeURIComponent(name)}/inputs`, { signal })).items,
  });
}
