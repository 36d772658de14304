import { useEffect, useMemo, useState, useSyncExternalStore } from "react";
import { useSession } from "../../use/useSession";
import { type Filter, wantedOf } from "./filter";
import { createJobList, type JobList, type ListState } from "./jobList";

/** The list as it was last shown: returning to it shows it at once, and reads it again in the background. */
let left: { readonly key: string; readonly list: JobList } | null = null;

export interface UsedList {
  readonly list: JobList;
  readonly state: ListState;
  readonly ids: readonly string[];
  readonly fresh: number;
  readonly gone: number;
  /** Throw away what is known and read it anew: ages count from now on. */
  readonly reload: () => void;
}

export function useJobList(filter: Filter): UsedList {
  const { caller, isAdmin } = useSession();
  const [loads, setLoads] = useState(0);
  const key = JSON.stringify([filter, { caller, isAdmin }]);
  const list = useMemo(() => listFor(key, loads), [key, loads]);
  useEffect(() => {
    left = { key, list };
    return list.start();
  }, [key, list]);
  const state = useSyncExternalStore(list.subscribe, list.state);
  useSyncExternalStore(list.store.subscribe, list.store.version);
  return {
    list,
    state,
    ids: list.store.ids(),
    fresh: list.store.freshCount(),
    gone: list.store.goneCount(),
    reload: () => setLoads((before) => before + 1),
  };
}

/** The key says all there is to say: two filters that say the same are the same list. */
function listFor(key: string, loads: number): JobList {
  if (loads === 0 && left?.key === key) return left.list;
  const [filter, who] = JSON.parse(key) as [Filter, { caller: string; isAdmin: boolean }];
  return createJobList(wantedOf(filter, who, Date.now()));
}
