import { ask } from "../../api/client";
import type { components } from "../../api/types.gen";

export type Key = components["schemas"]["KeyDocument"];
export type NewKey = components["schemas"]["NewKeyDocument"];
export type KeyWish = components["schemas"]["KeyRequest"];
export type Scope = KeyWish["scopes"][number];

export const KEYS = ["keys"] as const;

/** What a key can be made for, the least first. */
export const SCOPES: readonly { readonly scope: Scope; readonly line: string }[] = [
  { scope: "jobs:read", line: "See its own jobs" },
  { scope: "jobs:write", line: "Submit, cancel and retry its own jobs" },
  { scope: "audit:read", line: "Read the audit" },
  { scope: "priority:high", line: "Submit jobs of any priority" },
  { scope: "admin", line: "Everything, for everybody" },
];

export async function listKeys(): Promise<readonly Key[]> {
  const { items } = await ask<components["schemas"]["KeyList"]>("/keys");
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
