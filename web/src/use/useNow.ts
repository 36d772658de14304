import { useSyncExternalStore } from "react";

interface Ticker {
  /** The same function every time: with another one React would listen anew at each render, and a page that is drawn ten
   * times a second would never let the second come to its end. */
  readonly subscribe: (hear: () => void) => () => void;
  now: number;
  timer: ReturnType<typeof setInterval> | undefined;
  readonly listeners: Set<() => void>;
}

/** One clock for each interval, so that all ages of a table change together. */
const tickers = new Map<number, Ticker>();

/** The time in milliseconds, updated at the interval; the clock stands still while the page is hidden. */
export function useNow(everyMs = 1_000): number {
  const ticker = tickerOf(everyMs);
  return useSyncExternalStore(ticker.subscribe, () => ticker.now);
}

export function tickerOf(everyMs: number): Ticker {
  let ticker = tickers.get(everyMs);
  if (ticker === undefined) {
    const made: Ticker = {
      subscribe: (hear) => listen(made, everyMs, hear),
      now: Date.now(),
      timer: undefined,
      listeners: new Set(),
    };
    ticker = made;
    tickers.set(everyMs, ticker);
  } else if (ticker.timer === undefined) ticker.now = Date.now();
  return ticker;
}

function listen(ticker: Ticker, everyMs: number, hear: () => void): () => void {
  ticker.listeners.add(hear);
  ticker.timer ??= setInterval(() => tick(ticker), everyMs);
  return () => {
    ticker.listeners.delete(hear);
    if (ticker.listeners.size > 0) return;
    clearInterval(ticker.timer);
    ticker.timer = undefined;
  };
}

function tick(ticker: Ticker): void {
  if (document.hidden) return;
  ticker.now = Date.now();
  for (const hear of ticker.listeners) hear();
}

// A tab that becomes visible again shows the current ages at once.
if (typeof document !== "undefined") {
  document.addEventListener("visibilitychange", () => {
    for (const ticker of tickers.values()) tick(ticker);
  });
}
