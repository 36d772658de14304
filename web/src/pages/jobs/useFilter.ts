import { useCallback, useMemo } from "react";
import { useSearch } from "../../use/useSearch";
import { type Filter, filterOf, type Issue, KEYS } from "./filter";
import { wordsOf } from "./words";

/** The API's own names, so that a link to the list reads as a call does; `q` takes the written form. */
const FIRST = {
  status: [] as string[],
  activity: [] as string[],
  recipe: "",
  label: [] as string[],
  event: "",
  failed_step: "",
  since: "",
  until: "",
  caller: "",
  q: "",
};

/** The filter lives in the address. What of it cannot be understood is said, and the rest holds. */
export function useFilter(): [Filter, readonly Issue[], (filter: Filter) => void] {
  const [search, setSearch] = useSearch(FIRST);
  const { filter, issues } = useMemo(() => {
    const given = KEYS.flatMap((key) => {
      const value = search[key];
      return (typeof value === "string" ? [value] : value)
        .filter((one) => one !== "")
        .map((one) => ({ key, value: one }));
    });
    return filterOf([...given, ...wordsOf(search.q)]);
  }, [search]);
  const change = useCallback(
    (next: Filter) => {
      const joined = (all: readonly string[]): string[] => (all.length === 0 ? [] : [all.join(",").toLowerCase()]);
      setSearch({ ...next, status: joined(next.status), activity: joined(next.activity), q: "" }, "push");
    },
    [setSearch],
  );
  return [filter, issues, change];
}
