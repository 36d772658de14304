import { useMemo } from "react";
import { useSearch as useSearchText } from "wouter";
import { readSearch, type Shape, type Widened, writeSearch } from "./search";

export type SetSearch<S extends Shape> = (patch: Partial<Widened<S>>, how?: "replace" | "push") => void;

/**
 * The page's state in the address: `const [search, setSearch] = useSearch(FIRST)` with `FIRST = {q: "", state: [] as
 * string[], page: 1}` outside the component. Typing replaces; give "push" where the back button should lead back.
 */
export function useSearch<S extends Shape>(first: S): [Widened<S>, SetSearch<S>] {
  const text = useSearchText();
  const values = useMemo(() => readSearch(first, text), [first, text]);
  const set = useMemo<SetSearch<S>>(() => {
    return (patch, how = "replace") => {
      // From the address as it is now, not as it was drawn: two changes in one event must both hold.
      const search = writeSearch(first, location.search, patch);
      if (search === location.search) return;
      const url = location.pathname + search + location.hash;
      if (how === "push") history.pushState(null, "", url);
      else history.replaceState(history.state, "", url);
    };
  }, [first]);
  return [values, set];
}
