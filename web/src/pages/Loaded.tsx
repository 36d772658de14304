import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { ProblemView } from "../ui/ProblemView";
import { Skeleton } from "../ui/Skeleton";

interface LoadedProps<T> {
  readonly query: UseQueryResult<T>;
  /** How many rows the skeleton has, or what is drawn in its place. */
  readonly rows?: number;
  readonly skeleton?: ReactNode;
  readonly children: (data: T) => ReactNode;
}

/** What was asked for, or its skeleton, or why it did not come. What came once stays while a later question fails. */
export function Loaded<T>({ query, rows = 5, skeleton, children }: LoadedProps<T>) {
  const { data, error } = query;
  const problem = error !== null && (
    <div className="p-4">
      <ProblemView problem={error} onRetry={() => void query.refetch()} />
    </div>
  );
  if (data === undefined) return problem || (skeleton ?? <Skeleton rows={rows} />);
  return (
    <>
      {problem}
      {children(data)}
    </>
  );
}
