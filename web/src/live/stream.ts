/**
 * One connection to `GET /console/stream`, kept up: opened, watched, opened again where it broke off.
 *
 * It reads the answer of `fetch` with a parser of its own and does not use EventSource: topics change while it is open, so
 * the address does too; EventSource hides why it was refused (401: sign in; 429: when to come back) and hides the
 * comments that tell a quiet stream from a dead one.
 */
import { retryAfterMs, waitMs } from "./backoff";
import { createParser, type SseEvent } from "./sse";

/** The server says something every 15 s; twice and a bit without a word is a dead connection. */
const SILENCE_MS = 40_000;
const OPEN_MS = 15_000;
/** A stream that lived this long was no failure, however it ended. */
const LIVED_MS = 5_000;
const SIGNED_OUT_MS = 60_000;

export interface StreamHooks {
  /** What to ask for: the topics with their places; null for nothing. */
  cursor(): string | null;
  onOpen(): void;
  onEvent(event: SseEvent): void;
  /** Something was heard, be it only a comment. */
  onSign(): void;
  /** The connection is gone; `failures` in a row so far, none if it was told to come back. */
  onBroken(failures: number): void;
  onIdle(): void;
  onSignedOut(): void;
  /** The server cannot read our places. */
  onBadPlaces(): void;
}

export interface StreamWays {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly wait: (failures: number) => number;
  readonly silenceMs: number;
}

export interface Stream {
  /** Open, or open anew with what the cursor says now. */
  open(): void;
  /** Close without a word, until it is opened. */
  close(): void;
  /** Do not wait for the next try; look whether the open one still lives. */
  nudge(): void;
  readonly isUp: boolean;
}

type End =
  | { readonly kind: "ended"; readonly livedMs: number }
  | { readonly kind: "bye" }
  | { readonly kind: "refused"; readonly status: number; readonly afterMs: number | null };

const WAYS: StreamWays = {
  url: "/console/stream",
  fetch: (...asked) => fetch(...asked),
  wait: waitMs,
  silenceMs: SILENCE_MS,
};

export function createStream(hooks: StreamHooks, given: Partial<StreamWays> = {}): Stream {
  const ways = { ...WAYS, ...given };
  let current: AbortController | null = null;
  let again: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  let heardAt = 0;

  const close = (): void => {
    clearTimeout(again);
    again = undefined;
    current?.abort();
    current = null;
  };

  const open = (): void => {
    close();
    const cursor = hooks.cursor();
    if (cursor === null) {
      hooks.onIdle();
      return;
    }
    const mine = new AbortController();
    current = mine;
    listen(cursor, mine)
      .catch((): End => ({ kind: "ended", livedMs: 0 }))
      .then((end) => {
        // A newer connection has taken over: the rest of this one is dropped.
        if (current !== mine) return;
        current = null;
        mine.abort();
        settle(end);
      });
  };

  const later = (ms: number): void => {
    again = setTimeout(open, ms);
  };

  const settle = (end: End): void => {
    if (end.kind === "refused" && end.status === 401) {
      hooks.onSignedOut();
      later(SIGNED_OUT_MS);
      return;
    }
    if (end.kind === "refused" && end.status === 400) hooks.onBadPlaces();
    const isFine = end.kind === "bye" || (end.kind === "ended" && end.livedMs > LIVED_MS);
    failures = isFine ? 0 : failures + 1;
    hooks.onBroken(failures);
    const asked = end.kind === "refused" ? end.afterMs : null;
    later(Math.max(asked ?? 0, ways.wait(failures)));
  };

  const listen = async (cursor: string, mine: AbortController): Promise<End> => {
    const began = Date.now();
    let watch = setTimeout(() => mine.abort(), OPEN_MS);
    let said: End | null = null;
    const parser = createParser({
      onEvent: (event) => {
        if (current !== mine) return;
        if (event.event === "bye") said = { kind: "bye" };
        else hooks.onEvent(event);
      },
    });
    try {
      const answer = await ways.fetch(`${ways.url}?topics=${encodeURIComponent(cursor)}`, {
        headers: { Accept: "text/event-stream" },
        credentials: "same-origin",
        cache: "no-store",
        signal: mine.signal,
      });
      if (!answer.ok || answer.body === null) {
        const afterMs = retryAfterMs(answer.headers.get("Retry-After"), Date.now());
        return { kind: "refused", status: answer.status, afterMs };
      }
      heardAt = Date.now();
      hooks.onOpen();
      const reader = answer.body.getReader();
      while (said === null) {
        clearTimeout(watch);
        watch = setTimeout(() => mine.abort(), ways.silenceMs);
        const { done, value } = await reader.read();
        // Aborted while these bytes were on their way: they come again, on the connection that took over.
        if (done || current !== mine) break;
        heardAt = Date.now();
        hooks.onSign();
        parser.push(value);
      }
    } catch {
      // Cut off, refused by the network, or aborted: what was told until then counts.
    } finally {
      clearTimeout(watch);
    }
    return said ?? { kind: "ended", livedMs: Date.now() - began };
  };

  return {
    open,
    close,
    nudge: () => {
      const isSilent = current !== null && heardAt > 0 && Date.now() - heardAt > ways.silenceMs / 2;
      if (again !== undefined || isSilent) open();
    },
    get isUp() {
      return current !== null;
    },
  };
}
