/** The job on the page: its snapshot, then the patches of the stream. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useRef, useState, useSyncExternalStore } from "react";
import { ask, Problem } from "../../api/client";
import type { Structure } from "../../graph/types";
import { followJob } from "../../live";
import { createJobLive, type JobLive } from "./jobLive";
import type { EventLine, GraphDocument, JobDocument } from "./types";

/** A fan-out makes its children in batches: one more look for several of them. */
const LOOK_AGAIN_MS = 300;
const TRY_AGAIN_MS = 3_000;

export interface Opened {
  readonly live: JobLive | null;
  readonly problem: Error | null;
  readonly retry: () => void;
}

export function useJobLive(id: string): Opened {
  const { data, error, errorUpdateCount, refetch } = useQuery({
    queryKey: ["job", id, "snapshot"],
    queryFn: ({ signal }) => snapshot(id, signal),
    // From here on the stream tells what changes.
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    refetchOnWindowFocus: false,
    refetchOnReconnect: false,
    structuralSharing: false,
  });
  const [live, setLive] = useState<JobLive | null>(null);
  /** Goes up when the stream has to be joined again, at the snapshot's place. */
  const [joined, setJoined] = useState(0);
  const made = useRef<JobLive | null>(null);
  const isLost = useRef(false);

  useEffect(() => {
    if (data === undefined) return;
    if (made.current === null) {
      made.current = createJobLive(data.job, data.graph);
      setLive(made.current);
    } else made.current.load(data.job, data.graph);
    if (isLost.current) {
      isLost.current = false;
      setJoined((many) => many + 1);
    }
  }, [data]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: joined again when it says so
  useEffect(() => {
    if (live === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const lookAgain = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        void refetch();
      }, LOOK_AGAIN_MS);
    };
    const unfollow = followJob(id, live.seq(), {
      onPatch: (patch) => {
        if (live.apply(patch)) lookAgain();
      },
      onReset: () => {
        isLost.current = true;
        lookAgain();
      },
      // Over and all told, or taken away meanwhile: a last look says which.
      onGone: (code) => {
        if (code !== "ended") lookAgain();
      },
    });
    return () => {
      clearTimeout(timer);
      unfollow();
    };
  }, [id, live, joined, refetch]);
  // A page that is shown already does not give up: it asks for what it missed until the server answers.
  // biome-ignore lint/correctness/useExhaustiveDependencies: every failure is another reason
  useEffect(() => {
    if (error === null || live === null || isAway(error)) return;
    const timer = setTimeout(() => void refetch(), TRY_AGAIN_MS);
    return () => clearTimeout(timer);
  }, [error, errorUpdateCount, live, refetch]);
  return { live, problem: error, retry: refetch };
}

/** Whether the server says that there is no such job, rather than nothing. */
export function isAway(problem: Error): boolean {
  return problem instanceof Problem && problem.body.status === 404;
}

async function snapshot(id: string, signal: AbortSignal): Promise<{ job: JobDocument; graph: GraphDocument }> {
  const path = `/jobs/${encodeURIComponent(id)}`;
  const [job, graph] = await Promise.all([
    ask<JobDocument>(path, { signal }),
    ask<GraphDocument>(`${path}/graph?children=states`, { signal }),
  ]);
  return { job, graph };
}

export function useJob(live: JobLive): JobDocument {
  return useSyncExternalStore((wake) => live.subscribe("job", wake), live.job);
}

export function useStructure(live: JobLive): Structure {
  return useSyncExternalStore((wake) => live.subscribe("structure", wake), live.structure);
}

export function useLines(live: JobLive): readonly EventLine[] {
  return useSyncExternalStore((wake) => live.subscribe("events", wake), live.lines);
}

/** Something read from the store, at most every so often: for what would cost too much at every patch. */
export function useNowAndThen<T>(live: JobLive, read: () => T, everyMs: number): T {
  const [value, setValue] = useState(read);
  const latest = useRef(read);
  latest.current = read;
  useEffect(() => {
    setValue(() => latest.current());
    let timer: ReturnType<typeof setTimeout> | undefined;
    const later = (): void => {
      timer ??= setTimeout(() => {
        timer = undefined;
        setValue(() => latest.current());
      }, everyMs);
    };
    const leave = live.graph.subscribeAll(later);
    return () => {
      clearTimeout(timer);
      leave();
    };
  }, [live, everyMs]);
  return value;
}
