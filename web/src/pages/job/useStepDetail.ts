import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { ask } from "../../api/client";
import type { StepNo } from "../../graph/types";
import type { JobLive } from "./jobLive";
import type { StepDetail } from "./types";

/** A step that says something with every percent is asked about this often. */
const AGAIN_MS = 1_000;

/** Everything about a step, again whenever the stream says that something happened to it. */
export function useStepDetail(id: string, live: JobLive, no: StepNo) {
  const query = useQuery({
    queryKey: ["job", id, "step", no],
    queryFn: ({ signal }) => ask<StepDetail>(`/jobs/${id}/steps/${no}`, { signal }),
    placeholderData: keepPreviousData,
    staleTime: 0,
  });
  const { refetch } = query;
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let askedAt = 0;
    let heard = live.lines().at(-1)?.seq ?? 0;
    const later = (): void => {
      const wait = Math.max(0, askedAt + AGAIN_MS - Date.now());
      timer ??= setTimeout(() => {
        timer = undefined;
        askedAt = Date.now();
        void refetch();
      }, wait);
    };
    const onLines = (): void => {
      const lines = live.lines();
      const isOurs = lines.some((line) => line.seq > heard && (line.no === no || line.no === null));
      heard = lines.at(-1)?.seq ?? heard;
      if (isOurs) later();
    };
    const leave = [live.subscribe("events", onLines), live.graph.subscribe(no, later)];
    return () => {
      clearTimeout(timer);
      for (const go of leave) go();
    };
  }, [live, no, refetch]);
  return query;
}
