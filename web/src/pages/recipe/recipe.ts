import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { Json } from "../../form/spec";
import type { RecipeDocument } from "./plan";

export interface RecentInputs {
  readonly job_id: string;
  readonly at: string;
  readonly inputs: Json;
}

/** One version of a recipe; 0 is the newest. */
export function useRecipe(name: string, version: number): UseQueryResult<RecipeDocument> {
  const query = version > 0 ? `?version=${version}` : "";
  return useQuery({
    queryKey: ["recipes", name, "version", version],
    queryFn: ({ signal }) => ask<RecipeDocument>(`/recipes/${encodeURIComponent(name)}${query}`, { signal }),
    staleTime: 30_000,
  });
}

export function useRecentInputs(name: string): UseQueryResult<readonly RecentInputs[]> {
  return useQuery({
    queryKey: ["recipes", name, "inputs"],
    queryFn: async ({ signal }) =>
      (await ask<{ items: RecentInputs[] }>(`/recipes/${encodeURIComponent(name)}/inputs`, { signal })).items,
  });
}
