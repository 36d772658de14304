/** One way to the API: same origin, the session's cookie, problems as errors. */

export interface ProblemBody {
  readonly title: string;
  readonly status: number;
  readonly detail?: string;
  readonly code: string;
  readonly request_id?: string;
  readonly hint?: string;
  readonly errors?: readonly { readonly pointer: string; readonly message: string }[];
}

export class Problem extends Error {
  readonly body: ProblemBody;

  constructor(body: ProblemBody) {
    super(body.detail ?? body.title);
    this.name = "Problem";
    this.body = body;
  }

  get isSignedOut(): boolean {
    return this.body.status === 401;
  }
}

/** Any thrown value, as a problem that can be shown. */
export function problemOf(error: unknown): Problem {
  if (error instanceof Problem) return error;
  const detail = error instanceof Error ? error.message : String(error);
  return new Problem({ title: "Internal error in the console", status: 0, code: "console_broken", detail });
}

let csrf = "";

/** What changes must carry; told by `GET /console/session`. */
export function keepCsrf(token: string): void {
  csrf = token;
}

export interface Asked {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal | undefined;
}

export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  let answer = await send(path, asked);
  if (answer.status === 403 && (await codeOf(answer)) === "bad_csrf" && (await refreshCsrf())) {
    // Another tab signed in again: the token is new, and the request changed nothing yet.
    answer = await send(path, asked);
  }
  if (!answer.ok) throw new Problem(await bodyOf(answer));
  return answer.status === 204 ? (undefined as T) : ((await answer.json()) as T);
}

async function send(path: string, asked: Asked): Promise<Response> {
  const method = asked.method ?? "GET";
  const headers: Record<string, string> = { Accept: "application/json", ...asked.headers };
  if (asked.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-Windlass-CSRF"] = csrf;
  try {
    return await fetch(path, {
      method,
      headers,
      credentials: "same-origin",
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal: asked.signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({
      title: "The server does not answer",
      status: 0,
      code: "server_unavailable",
      hint: "Check that it runs. The page continues by itself when the server answers.",
    });
  }
}

async function codeOf(answer: Response): Promise<string | undefined> {
  return (await bodyOf(answer.clone())).code;
}

async function refreshCsrf(): Promise<boolean> {
  const answer = await send("/console/session", {});
  if (!answer.ok) return false;
  keepCsrf(((await answer.json()) as { csrf: string }).csrf);
  return true;
}

async function bodyOf(answer: Response): Promise<ProblemBody> {
  try {
    return (await answer.json()) as ProblemBody;
  } catch {
    return { title: answer.statusText || "Unreadable answer", status: answer.status, code: "broken" };
  }
}
