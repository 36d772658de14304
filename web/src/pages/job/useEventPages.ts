import { useInfiniteQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { ask } from "../../api/client";
import type { EventPage } from "./types";

const PAGE = 200;

/** The newest events, and further back on request. */
export function useEventPages(id: string) {
  const query = useInfiniteQuery({
    queryKey: ["job", id, "events"],
    queryFn: ({ pageParam, signal }) => {
      const before = pageParam === null ? "" : `&before=${pageParam}`;
      return ask<EventPage>(`/jobs/${id}/events?order=desc&limit=${PAGE}${before}`, { signal });
    },
    initialPageParam: null as number | null,
    getNextPageParam: (page) => (page.items.length < PAGE ? null : (page.next ?? page.items.at(-1)?.seq ?? null)),
    // What came since is heard from the stream.
    staleTime: 0,
    gcTime: 0,
    refetchOnWindowFocus: false,
  });
  const events = useMemo(() => query.data?.pages.flatMap((page) => page.items) ?? [], [query.data]);
  return { ...query, events };
}
