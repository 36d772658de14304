import { type UseQueryResult, useQuery, useQueryClient } from "@tanstack/react-query";
import { ask, keepCsrf, Problem } from "../api/client";
import type { Schemas, Scope } from "../api/schemas";
import { restartLive } from "../live";

export type ConsolePage = Schemas["ConsolePage"];
export type SessionDocument = Schemas["SessionDocument"];

const PATH = "/console/session";
export const SESSION_KEY = ["session"] as const;

// The live connection is shared by all tabs and lives longer than a page: whenever the person changes, it begins anew.

/** The session; null if no caller is signed in. The first request also exchanges the link's token for a session. */
export function useSessionQuery(): UseQueryResult<SessionDocument | null> {
  return useQuery({ queryKey: SESSION_KEY, queryFn: open, staleTime: 60_000, refetchOnWindowFocus: true });
}

/** The session of a page behind the gate: there, the gate has seen that there is one. */
export function useSession(): SessionDocument & {
  readonly isAdmin: boolean;
  readonly can: (scope: Scope) => boolean;
} {
  const { data } = useSessionQuery();
  const session = data ?? SIGNED_OUT;
  const isAdmin = session.role === "admin";
  return { ...session, isAdmin, can: (scope) => isAdmin || session.scopes.includes(scope) };
}

export function useSignIn(): (key: string) => Promise<void> {
  const queries = useQueryClient();
  return async (key) => {
    const session = keep(await ask<SessionDocument>(PATH, { method: "POST", body: { key } }));
    queries.setQueryData(SESSION_KEY, session);
    restartLive();
  };
}

export function useSignOut(): () => Promise<void> {
  const queries = useQueryClient();
  return async () => {
    await ask(PATH, { method: "DELETE" });
    restartLive();
    const isTheirs = (query: { readonly queryKey: readonly unknown[] }): boolean =>
      query.queryKey[0] !== SESSION_KEY[0];
    await queries.cancelQueries({ predicate: isTheirs });
    queries.setQueryData(SESSION_KEY, null);
    // Nothing of one person's may be seen by the next one here. Once the pages are gone: they would ask again for it.
    setTimeout(() => queries.removeQueries({ predicate: isTheirs }));
  };
}

const SIGNED_OUT: SessionDocument = {
  caller: "",
  role: "caller",
  scopes: [],
  csrf: "",
  expires_at: "",
  version: "",
  console: "full",
  pages: [],
  demo: null,
};

async function open(): Promise<SessionDocument | null> {
  const token = new URLSearchParams(location.search).get("token");
  try {
    if (token !== null) return await trade(token);
    return keep(await ask<SessionDocument>(PATH));
  } catch (error) {
    if (error instanceof Problem && error.isSignedOut) return null;
    throw error;
  }
}

/** A link works once. A second use must not end the session that the first one began. */
async function trade(token: string): Promise<SessionDocument> {
  try {
    const session = keep(await ask<SessionDocument>(PATH, { method: "POST", body: { token } }));
    forgetToken();
    restartLive();
    return session;
  } catch (error) {
    // Without an answer the token is still good: it stays in the address for another try.
    if (!(error instanceof Problem) || error.body.status === 0 || error.body.status >= 500) throw error;
    forgetToken();
    return keep(await ask<SessionDocument>(PATH));
  }
}

function forgetToken(): void {
  const params = new URLSearchParams(location.search);
  params.delete("token");
  const search = params.size === 0 ? "" : `?${params}`;
  history.replaceState(history.state, "", location.pathname + search + location.hash);
}

function keep(session: SessionDocument): SessionDocument {
  keepCsrf(session.csrf);
  return session;
}
