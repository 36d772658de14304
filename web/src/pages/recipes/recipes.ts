import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type RecipeSummary = components["schemas"]["RecipeSummary"];

export function useRecipes(): UseQueryResult<readonly RecipeSummary[]> {
  return useQuery({
    queryKey: ["recipes"],
    queryFn: async ({ signal }) => (await ask<{ items: RecipeSummary[] }>("/recipes", { signal })).items,
    // A worker that starts registers its recipes: they are there before one asks.
    refetchInterval: 15_000,
  });
}

export function useVersions(name: string): UseQueryResult<readonly RecipeSummary[]> {
  return useQuery({
    queryKey: ["recipes", name, "versions"],
    queryFn: async ({ signal }) =>
      (await ask<{ items: RecipeSummary[] }>(`/recipes/${encodeURIComponent(name)}/versions`, { signal })).items,
  });
}

/** Names that contain the typed text in any case; names that begin with it come first. */
export function found(all: readonly RecipeSummary[], typed: string): readonly RecipeSummary[] {
  const wanted = typed.trim().toLowerCase();
  if (wanted === "") return all;
  const rank = (one: RecipeSummary): number => one.name.toLowerCase().indexOf(wanted);
  return all.filter((one) => rank(one) >= 0).sort((a, b) => Number(rank(a) > 0) - Number(rank(b) > 0));
}
