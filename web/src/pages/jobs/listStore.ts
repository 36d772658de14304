/**
 * The rows of the list, outside React: an update wakes the row that it names and nothing else.
 *
 * What is shown keeps its place. A job that is new to the list waits among the fresh ones while the list is held (by a
 * pointer, a scroll or a choice). A job that leaves the filter stays, dimmed, until the list is refreshed.
 */
import { isOlder, type JobDocument } from "../../live/patch";

/** Of more than so many that are new, the list is read anew instead. */
export const FRESH_MAX = 2_000;

export interface ListStore {
  /** What is shown, the newest first; the same array until it changes. */
  ids(): readonly string[];
  get(id: string): JobDocument | undefined;
  /** Whether a row that is shown has left the filter. */
  isGone(id: string): boolean;
  freshCount(): number;
  goneCount(): number;
  /** A page of the list as the server has it, below what is known or in place of it. */
  load(jobs: readonly JobDocument[], how: "first" | "more", hasMore: boolean): void;
  /** The newest page read again: what it has is merged, and nothing is taken away. */
  merge(jobs: readonly JobDocument[]): void;
  patch(jobs: readonly JobDocument[]): void;
  remove(id: string): void;
  /** The server no longer finds these by the filter, though nothing that is known of them says why. */
  leave(ids: readonly string[]): void;
  /** While it is held, what is shown stays where it is. */
  hold(isHeld: boolean): void;
  /** Show what is fresh, and let go of what has left. */
  refresh(): void;
  subscribeRow(id: string, wake: () => void): () => void;
  /** Woken when rows come or go, or the counts of fresh and gone change; at most once per patch. */
  subscribe(wake: () => void): () => void;
  version(): number;
}

export function createListStore(matches: (job: JobDocument) => boolean): ListStore {
  const jobs = new Map<string, JobDocument>();
  const fresh = new Set<string>();
  const gone = new Set<string>();
  const rows = new Map<string, Set<() => void>>();
  const watchers = new Set<() => void>();
  let shown = new Set<string>();
  let ids: readonly string[] = [];
  let hasMore = false;
  let isLoaded = false;
  let isHeld = false;
  let version = 0;

  const changed = (): void => {
    version += 1;
    for (const wake of watchers) wake();
  };
  const show = (next: readonly string[]): void => {
    ids = next;
    shown = new Set(next);
  };
  const reveal = (): void => {
    // An id begins with the time at which it was made, and the server orders by it too.
    show([...ids, ...fresh].sort(newestFirst));
    fresh.clear();
  };

  /** A document of a job that is shown. */
  const update = (job: JobDocument): void => {
    const known = jobs.get(job.job_id);
    if (known !== undefined && isOlder(job, known)) return;
    jobs.set(job.job_id, job);
    if (matches(job)) gone.delete(job.job_id);
    else gone.add(job.job_id);
    for (const wake of rows.get(job.job_id) ?? []) wake();
  };
  /** A document of a job that is not: it is kept if it belongs between the rows that are known. */
  const consider = (job: JobDocument): void => {
    const known = jobs.get(job.job_id);
    if (known !== undefined && isOlder(job, known)) return;
    const last = ids.at(-1);
    const isBelow = hasMore && last !== undefined && job.job_id < last;
    if (matches(job) && !isBelow && (fresh.size < FRESH_MAX || fresh.has(job.job_id))) {
      jobs.set(job.job_id, job);
      fresh.add(job.job_id);
    } else {
      jobs.delete(job.job_id);
      fresh.delete(job.job_id);
    }
  };

  const patch = (batch: readonly JobDocument[]): void => {
    const before = fresh.size;
    const goneBefore = gone.size;
    for (const job of batch) {
      if (shown.has(job.job_id)) update(job);
      else consider(job);
    }
    // Before the first page it is not known what is old: what comes waits.
    if (fresh.size > 0 && isLoaded && (!isHeld || ids.length === 0)) {
      reveal();
      changed();
    } else if (fresh.size !== before || gone.size !== goneBefore) changed();
  };

  return {
    ids: () => ids,
    get: (id) => jobs.get(id),
    isGone: (id) => gone.has(id),
    freshCount: () => (isLoaded ? fresh.size : 0),
    goneCount: () => gone.size,
    load: (page, how, more) => {
      if (how === "first") {
        show([]);
        gone.clear();
        isLoaded = true;
      }
      for (const job of page) {
        const known = jobs.get(job.job_id);
        if (known === undefined || !isOlder(job, known)) jobs.set(job.job_id, job);
        fresh.delete(job.job_id);
      }
      hasMore = more;
      const added = page.map((job) => job.job_id).filter((id) => !shown.has(id));
      show([...ids, ...added]);
      for (const id of added) for (const wake of rows.get(id) ?? []) wake();
      if (how === "first") reveal();
      changed();
    },
    merge: patch,
    patch,
    remove: (id) => {
      jobs.delete(id);
      fresh.delete(id);
      gone.delete(id);
      if (shown.has(id)) show(ids.filter((one) => one !== id));
      changed();
    },
    leave: (left) => {
      const before = gone.size;
      for (const id of left) {
        if (!shown.has(id)) continue;
        gone.add(id);
        for (const wake of rows.get(id) ?? []) wake();
      }
      if (gone.size !== before) changed();
    },
    hold: (next) => {
      isHeld = next;
      if (isHeld || fresh.size === 0 || !isLoaded) return;
      reveal();
      changed();
    },
    refresh: () => {
      show(ids.filter((id) => !gone.has(id)));
      for (const id of gone) jobs.delete(id);
      gone.clear();
      reveal();
      changed();
    },
    subscribeRow: (id, wake) => {
      const wakes = rows.get(id) ?? new Set();
      rows.set(id, wakes.add(wake));
      return () => {
        wakes.delete(wake);
        if (wakes.size === 0 && rows.get(id) === wakes) rows.delete(id);
      };
    },
    subscribe: (wake) => {
      watchers.add(wake);
      return () => watchers.delete(wake);
    },
    version: () => version,
  };
}

function newestFirst(one: string, other: string): number {
  return one < other ? 1 : one > other ? -1 : 0;
}
