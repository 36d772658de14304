import { useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

const NONE: readonly string[] = [];

/** The recipes there are, to choose from. The list does without them when they cannot be read. */
export function useRecipeNames(isWanted: boolean): readonly string[] {
  const { data } = useQuery({
    queryKey: ["recipes", "names"],
    enabled: isWanted,
    queryFn: ({ signal }) => ask<components["schemas"]["RecipeList"]>("/recipes", { signal }),
    staleTime: 60_000,
  });
  return data?.items.map((recipe) => recipe.name) ?? NONE;
}
