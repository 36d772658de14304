/** Providers and budgets, as the page shows them. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { Schemas } from "../../api/schemas";
import type { Look } from "../../state";

export type Provider = Schemas["ProviderDocument"];
export type Budget = Schemas["BudgetDocument"];

const REFRESH_MS = 4_000;

export function useProviders(): UseQueryResult<readonly Provider[]> {
  return useQuery({
    queryKey: ["providers"],
    queryFn: async ({ signal }) => (await ask<{ items: Provider[] }>("/providers", { signal })).items,
    refetchInterval: REFRESH_MS,
    retry: false,
  });
}

export function useBudgets(): UseQueryResult<readonly Budget[]> {
  return useQuery({
    queryKey: ["budgets"],
    queryFn: async ({ signal }) => (await ask<{ items: Budget[] }>("/budgets", { signal })).items,
    refetchInterval: REFRESH_MS,
    retry: false,
  });
}

export interface Said {
  readonly look: Look;
  readonly word: string;
  /** What it means for waiting steps. */
  readonly line: string;
}

/** How a provider is, the worst first: the breaker, then what it asked for itself, then its places. */
export function stateOf(provider: Provider, now: number): Said {
  const pausedUntil = provider.paused_until === null ? Number.NaN : Date.parse(provider.paused_until);
  if (provider.breaker === "open")
    return {
      look: "failed",
      word: "Breaker open",
      line: "Too many requests failed in a row: no requests are sent for now.",
    };
  if (provider.breaker === "half_open")
    return { look: "retrying", word: "Half open", line: "One request tests whether the provider answers again." };
  if (pausedUntil > now) return { look: "waiting", word: "Busy", line: "The provider asked for a pause." };
  if (provider.breaker !== "closed") return { look: "pending", word: provider.breaker, line: "" };
  if (provider.failures > 0)
    return {
      look: "retrying",
      word: "Failing",
      line: "The last requests failed; a few more failures open the breaker.",
    };
  if (provider.held >= provider.concurrency && provider.waiting > 0)
    return { look: "queued", word: "Full", line: "All slots are taken, and steps wait for one." };
  return { look: "succeeded", word: "Ready", line: "" };
}

/** When something may be asked of it again; null: at once. */
export function nextRequest(provider: Pick<Provider, "paused_until" | "free_at">, now: number): number | null {
  const latest = Math.max(...[provider.paused_until, provider.free_at].map((at) => (at === null ? 0 : Date.parse(at))));
  return latest > now ? latest : null;
}

/** Requests per second as people say it: "5 /s", "30 /min", "2 /h". */
export function rateText(perSecond: number): string {
  if (!Number.isFinite(perSecond) || perSecond <= 0) return "no limit";
  if (perSecond >= 1) return `${short(perSecond)} /s`;
  return perSecond * 60 >= 1 ? `${short(perSecond * 60)} /min` : `${short(perSecond * 3_600)} /h`;
}

function short(value: number): string {
  return value.toLocaleString("en", { maximumFractionDigits: value < 10 ? 1 : 0 });
}

/** A sum as the server writes it, a text: money is never a float here. */
export function moneyText(amount: string | number): string {
  const text = String(amount);
  if (!/^-?\d+(\.\d+)?$/.test(text)) return text;
  const [whole = "0", cents = ""] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",");
  return `${grouped}.${cents.replace(/0+$/, "").padEnd(2, "0")}`;
}
