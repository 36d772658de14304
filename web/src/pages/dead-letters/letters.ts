/** Failed jobs that were neither run again nor discarded, by kind of failure. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type Letters = components["schemas"]["DeadLetterDocument"];
export type LetterList = components["schemas"]["DeadLetterList"];
export type BulkDone = components["schemas"]["BulkDone"];
export type Act = "redrive" | "discard";
export type Start = "failed" | "first";

export const LETTERS_KEY = ["dead-letters"] as const;

export function useLetters(): UseQueryResult<LetterList> {
  return useQuery({
    queryKey: LETTERS_KEY,
    queryFn: ({ signal }) => ask<LetterList>("/dead-letters", { signal }),
    refetchInterval: 10_000,
  });
}

interface Wish {
  readonly dry_run: boolean;
  readonly start?: Start;
  readonly expect?: number;
  readonly reason?: string;
}

export function deal(fingerprint: string, act: Act, wish: Wish): Promise<BulkDone> {
  return ask<BulkDone>(`/dead-letters/${fingerprint}/${act}`, { method: "POST", body: wish });
}

/** Kinds whose recipe, step, code or message holds every word. */
export function matching(all: readonly Letters[], typed: string, recipe: string): readonly Letters[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) => {
    const text = `${one.recipe} ${one.step ?? ""} ${one.code} ${one.message}`.toLowerCase();
    return (recipe === "" || one.recipe === recipe) && words.every((word) => text.includes(word));
  });
}

/** "v3", "v1 and v3", "v1 to v9 (4)": where a failure came in, and whether it is over. */
export function versionsText(versions: readonly number[]): string {
  const sorted = [...versions].sort((a, b) => a - b);
  if (sorted.length === 0) return "–";
  if (sorted.length <= 2) return sorted.map((one) => `v${one}`).join(" and ");
  return `v${sorted[0]} to v${sorted.at(-1)} (${sorted.length})`;
}

/** What came of it, in a line: never "done" when some were refused. */
export function doneText(act: Act, done: BulkDone): string {
  const many = done.done.length;
  const word = act === "redrive" ? "run again" : "discarded";
  const refused = done.refused.length === 0 ? "" : `; ${done.refused.length} could not be (${codesOf(done)})`;
  const more = done.is_more ? "; there are more, press again for them" : "";
  return `${many} ${many === 1 ? "job" : "jobs"} ${word}${refused}${more}`;
}

function codesOf(done: BulkDone): string {
  return [...new Set(done.refused.map((one) => one.code))].join(", ");
}
