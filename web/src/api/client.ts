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
    this.body = body;
  }

  get isSignedOut(): boolean {
    return this.body.status === 401;
  }
}

let csrf = "";

/** What changes must carry; told by `GET /console/session`. */
export function keepCsrf(token: string): void {
  csrf = token;
}

export interface Asked {
  readonly method?: "GET" | "POST" | "PUT" | "DELETE";
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

export async function ask<T>(path: string, asked: Asked = {}): Promise<T> {
  const method = asked.method ?? "GET";
  const headers: Record<string, string> = { Accept: "application/json", ...asked.headers };
  if (asked.body !== undefined) headers["Content-Type"] = "application/json";
  if (method !== "GET") headers["X-Windlass-CSRF"] = csrf;
  let answer: Response;
  try {
    answer = await fetch(path, {
      method,
      headers,
      credentials: "same-origin",
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal: asked.signal ?? null,
    });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem({ title: "The server is away", status: 0, code: "server_unavailable", hint: "Is it running?" });
  }
  if (!answer.ok) throw new Problem(await problemOf(answer));
  return answer.status === 204 ? (undefined as T) : ((await answer.json()) as T);
}

async function problemOf(answer: Response): Promise<ProblemBody> {
  try {
    return (await answer.json()) as ProblemBody;
  } catch {
    return { title: answer.statusText || "No answer that can be read", status: answer.status, code: "broken" };
  }
}
