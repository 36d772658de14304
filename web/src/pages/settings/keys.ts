import { ask } from "../../api/client";
import type { Schemas, Scope } from "../../api/schemas";

export type Key = Schemas["KeyDocument"];
export type NewKey = Schemas["NewKeyDocument"];
export type KeyWish = Schemas["KeyRequest"];
export type { Scope } from "../../api/schemas";

export const KEYS = ["keys"] as const;

/** What a key can be made for, the weakest scope first. */
const LINES: Readonly<Record<Scope, string>> = {
  "jobs:read": "See its own jobs",
  "jobs:write": "Submit, cancel and retry its own jobs",
  "audit:read": "Read the audit",
  "approvals:decide": "Approve or reject what others request",
  "priority:high": "Submit jobs of any priority",
  "policy:read": "Read the policy, and ask it about requests",
  "policy:write": "Publish policies and roll them back",
  admin: "Everything, for the jobs of all callers",
};

export const SCOPES = (Object.keys(LINES) as Scope[]).map((scope) => ({ scope, line: LINES[scope] }));

export async function listKeys(): Promise<readonly Key[]> {
  const { items } = await ask<Schemas["KeyList"]>("/keys");
  return items.toSorted((a, b) => Number(b.is_live) - Number(a.is_live) || b.created_at.localeCompare(a.created_at));
}

export function makeKey(wish: KeyWish): Promise<NewKey> {
  return ask<NewKey>("/keys", { method: "POST", body: wish });
}

export function revokeKey(id: string): Promise<void> {
  return ask<void>(`/keys/${encodeURIComponent(id)}`, { method: "DELETE" });
}

/** Why a key is good no more; undefined: it is good. */
export function endOf(key: Key): "revoked" | "expired" | undefined {
  if (key.is_live) return undefined;
  return key.revoked_at === null ? "expired" : "revoked";
}
