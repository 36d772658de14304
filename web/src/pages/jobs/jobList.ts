/** The list as it is read: pages from the API, then the patches of the stream, in one store. */
import { ask, Problem, problemOf } from "../../api/client";
import { followJobs, type JobDocument } from "../../live";
import { isOver } from "../../state";
import { matches, paramsOf, type Wanted } from "./filter";
import { createListStore, type ListStore } from "./listStore";

const FIRST_LIMIT = 60;
/** What is read before the stream is open has to be read again: it is waited for, not for long. */
const OPEN_MS = 500;
const RETURN_MS = 5_000;
const MORE_LIMIT = 200;
/** A page may come short though there is more: so many are asked for before a person is. */
const LOOKS_MAX = 8;
const REREAD_MAX = 50;
/** The stream says when a job begins and ends. What an open one is doing meanwhile is asked for, this often. */
const LOOK_MS = 5_000;

interface JobPage {
  readonly items: readonly JobDocument[];
  readonly next: string | null;
}

export interface ListState {
  readonly phase: "loading" | "ready" | "failed";
  readonly problem: Problem | null;
  /** There may be more below. */
  readonly hasMore: boolean;
  readonly isReading: boolean;
}

export interface JobList {
  /** Tells lists apart. */
  readonly id: number;
  readonly wanted: Wanted;
  readonly store: ListStore;
  state(): ListState;
  subscribe(wake: () => void): () => void;
  /** Read and follow, until it is stopped. It may be started again, and knows what it knew. */
  start(): () => void;
  more(): void;
  retry(): void;
  /** Where the list was scrolled to when it was left. */
  scrolledTo: number;
}

let made = 0;

export function createJobList(wanted: Wanted): JobList {
  const store = createListStore((job) => matches(wanted, job));
  const watchers = new Set<() => void>();
  let state: ListState = { phase: "loading", problem: null, hasMore: false, isReading: false };
  let next: string | null = null;
  let reading = new AbortController();
  /** The stream was opened while the first page was on its way: what it has may be older. */
  let mustReread = false;

  const turn = (change: Partial<ListState>): void => {
    state = { ...state, ...change };
    for (const wake of watchers) wake();
  };
  const page = (cursor: string | null, limit: number): Promise<JobPage> => {
    const params = paramsOf(wanted);
    params.set("limit", String(limit));
    if (cursor !== null) params.set("cursor", cursor);
    return ask<JobPage>(`/jobs?${params}`, { signal: reading.signal });
  };

  /** Go on reading until there is something to show, the end, or enough has been looked at. */
  const read = async (how: "first" | "more"): Promise<void> => {
    if (state.isReading) return;
    const mine = reading;
    turn({ isReading: true, problem: null });
    try {
      const limit = how === "first" ? FIRST_LIMIT : MORE_LIMIT;
      for (let looks = 0, found = 0; looks < LOOKS_MAX && found < limit / 2; looks += 1) {
        const answer = await page(how === "first" && looks === 0 ? null : next, limit);
        next = answer.next;
        found += answer.items.length;
        store.load(answer.items, how === "first" && looks === 0 ? "first" : "more", next !== null);
        turn({ hasMore: next !== null, phase: found > 0 || next === null ? "ready" : state.phase });
        if (next === null) break;
      }
      turn({ phase: "ready", isReading: false });
    } catch (error) {
      // Stopped, and perhaps started again since: it is no longer this one's to say how it stands.
      if (mine.signal.aborted) return;
      turn({ phase: state.phase === "ready" ? "ready" : "failed", problem: problemOf(error), isReading: false });
    }
    if (mustReread && state.phase === "ready") {
      mustReread = false;
      void reread();
    }
  };

  /** Read what is shown again: changes were missed, or may have been. */
  const reread = async (): Promise<void> => {
    const missing = new Map(store.ids().map((id) => [id, store.get(id)]));
    try {
      let cursor: string | null = null;
      for (let pages = 0; pages < REREAD_MAX; pages += 1) {
        const answer: JobPage = await page(cursor, pages === 0 ? FIRST_LIMIT : MORE_LIMIT);
        store.merge(answer.items);
        for (const job of answer.items) missing.delete(job.job_id);
        cursor = answer.next;
        const last = answer.items.at(-1)?.job_id;
        const reached = cursor === null ? "" : last;
        if (reached !== undefined && [...missing.keys()].every((id) => id < reached)) break;
        if (cursor === null) break;
      }
      const left = [...missing].filter(([id, job]) => store.get(id) === job).map(([id]) => id);
      await Promise.all(left.slice(0, REREAD_MAX).map(lookAt));
    } catch (error) {
      // The dot says that the server is away; it is read again when it is back.
      if (!(error instanceof Problem) && !reading.signal.aborted) throw error;
    }
  };
  /** What the newest rows are doing. */
  const look = async (): Promise<void> => {
    const ids = store.ids();
    const isByActivity = wanted.filter.activity.length > 0 || wanted.filter.event !== "";
    const isIdle = state.phase === "ready" && !state.isReading && document.visibilityState === "visible";
    if (!isIdle || !(isByActivity || ids.some((id) => !isOver(store.get(id)?.status ?? "COMPLETED")))) return;
    try {
      const answer = await page(null, Math.min(Math.max(FIRST_LIMIT, ids.length), MORE_LIMIT));
      store.merge(answer.items);
      if (!isByActivity) return;
      const last = answer.next === null ? "" : (answer.items.at(-1)?.job_id ?? "g");
      const found = new Set(answer.items.map((job) => job.job_id));
      store.leave(ids.filter((id) => id >= last && !found.has(id)));
    } catch (error) {
      // The dot says that the server is away; the next look may find it again.
      if (!(error instanceof Problem) && !reading.signal.aborted) throw error;
    }
  };
  /** A row that the list no longer has: what has become of it? */
  const lookAt = async (id: string): Promise<void> => {
    try {
      store.patch([await ask<JobDocument>(`/jobs/${id}`, { signal: reading.signal })]);
    } catch (error) {
      if (error instanceof Problem && error.body.status === 404) store.remove(id);
    }
  };

  made += 1;
  return {
    id: made,
    wanted,
    store,
    scrolledTo: 0,
    state: () => state,
    subscribe: (wake) => {
      watchers.add(wake);
      return () => watchers.delete(wake);
    },
    start: () => {
      reading = new AbortController();
      state = { ...state, isReading: false };
      mustReread = false;
      const begin = (): void => void (state.phase === "ready" ? reread() : read("first"));
      const late = setTimeout(begin, state.phase === "ready" ? RETURN_MS : OPEN_MS);
      const looking = setInterval(() => void look(), LOOK_MS);
      const unfollow = followJobs(store.patch, () => {
        clearTimeout(late);
        // The first page is on its way, asked for before the stream was open.
        if (state.isReading && state.phase !== "ready") mustReread = true;
        else begin();
      });
      return () => {
        clearTimeout(late);
        clearInterval(looking);
        unfollow();
        reading.abort();
      };
    },
    more: () => {
      if (state.phase === "ready" && state.hasMore && state.problem === null) void read("more");
    },
    retry: () => {
      turn({ problem: null, phase: state.phase === "failed" ? "loading" : state.phase });
      void read(state.phase === "loading" ? "first" : "more");
    },
  };
}
