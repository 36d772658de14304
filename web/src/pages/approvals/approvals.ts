/** Approvals: what the API says of them, in words. */
import { type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask } from "../../api/client";
import type { Schemas } from "../../api/schemas";
import type { Look } from "../../state";
import { APPROVALS_KEY, type ApprovalPage } from "../../use/useToDecide";

export type Approval = Schemas["ApprovalDocument"];
export type Voters = Schemas["ApproverGroup"];
export type ApprovalState = Schemas["ApprovalState"];
export type Choice = Schemas["Choice"];
export type View = "decide" | "mine" | "all";

export const VIEWS: readonly { readonly value: View; readonly label: string }[] = [
  { value: "decide", label: "To decide" },
  { value: "mine", label: "Requested" },
  { value: "all", label: "All" },
];

const FILTER: Readonly<Record<View, string>> = {
  decide: "state=PENDING&decidable=true&limit=200",
  mine: "mine=true&limit=100",
  all: "limit=100",
};

export function useApprovals(view: View): UseQueryResult<ApprovalPage> {
  return useQuery({
    queryKey: [...APPROVALS_KEY, view],
    queryFn: ({ signal }) => ask<ApprovalPage>(`/approvals?${FILTER[view]}`, { signal }),
    refetchInterval: 10_000,
  });
}

export function useApproval(id: string | undefined): UseQueryResult<Approval> {
  return useQuery({
    queryKey: [...APPROVALS_KEY, "one", id],
    queryFn: ({ signal }) => ask<Approval>(`/approvals/${id}`, { signal }),
    enabled: id !== undefined,
    refetchInterval: 10_000,
  });
}

/** The vote is bound to what is on the page: if something else would run, the server refuses it. */
export function decide(approval: Approval, choice: Choice, reason: string): Promise<Approval> {
  const body = { reason, note: "", subject: approval.subject };
  return ask<Approval>(`/approvals/${approval.id}/${choice}`, { method: "POST", body });
}

/** The first to expire first: it is decided next. What is decided comes after, the newest first. */
export function inOrder(items: readonly Approval[]): readonly Approval[] {
  const isOpen = (one: Approval): boolean => one.state === "PENDING";
  return items.toSorted((a, b) => {
    if (isOpen(a) !== isOpen(b)) return isOpen(a) ? -1 : 1;
    return isOpen(a) ? a.expires_at.localeCompare(b.expires_at) : b.created_at.localeCompare(a.created_at);
  });
}

export function titleOf(one: Approval): string {
  return one.question || `Run ${one.recipe}`;
}

/** What asks: the recipe itself, or a rule of the policy. */
export function askedBy(one: Approval): string {
  if (one.rule === null) return `the recipe ${one.recipe}${one.step === null ? "" : `, at ${one.step}`}`;
  return `the rule ${one.rule}`;
}

export function approvedBy(one: Approval): readonly string[] {
  return one.votes.filter((vote) => vote.choice === "approve").map((vote) => vote.caller);
}

/** "role lead or grace; after 1h also role cto" */
export function peopleText(group: Voters): string {
  const names = [...group.roles.map((role) => `role ${role}`), ...group.callers];
  const later = [...group.escalate_roles.map((role) => `role ${role}`), ...group.escalate_callers];
  const first = names.length === 0 ? "everybody with the right to decide" : names.join(" or ");
  if (group.escalate_after_s === null || later.length === 0) return first;
  return `${first}; after ${leftText(group.escalate_after_s * 1_000)} also ${later.join(" or ")}`;
}

const UNITS: readonly (readonly [number, string])[] = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
];

/** Two units at most: "1d 3h", "59m 12s", "0s". */
export function leftText(ms: number): string {
  let rest = Math.max(0, Math.floor(ms / 1_000) * 1_000);
  const parts: string[] = [];
  for (const [size, name] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) parts.push(`${count}${name}`);
    if (parts.length > 0 && (count === 0 || parts.length === 2)) break;
  }
  return parts.join(" ") || "0s";
}

const LOOKS: Readonly<Record<ApprovalState, Look>> = {
  PENDING: "waiting",
  APPROVED: "ready",
  USED: "succeeded",
  REJECTED: "failed",
  EXPIRED: "failed",
  INVALIDATED: "cancelled",
};

const WORDS: Readonly<Record<ApprovalState, string>> = {
  PENDING: "Waiting",
  APPROVED: "Approved",
  USED: "Approved",
  REJECTED: "Rejected",
  EXPIRED: "Expired",
  INVALIDATED: "Void",
};

export function lookOf(state: ApprovalState): Look {
  return LOOKS[state] ?? "pending";
}

export function wordOf(state: ApprovalState): string {
  return WORDS[state] ?? state;
}
