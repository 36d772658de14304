import type { UseQueryResult } from "@tanstack/react-query";
import { Lock } from "lucide-react";
import type { ReactNode } from "react";
import { Problem } from "../api/client";
import { Empty } from "../ui/Empty";
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
  if (data === undefined && error instanceof Problem && error.body.status === 403) return <Denied problem={error} />;
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

/** A missing scope is not a fault, and trying again does not help. */
function Denied({ problem }: { readonly problem: Problem }) {
  const { title, detail, hint, request_id } = problem.body;
  return (
    <Empty
      icon={Lock}
      title={title}
      line={
        <>
          {detail !== title && <span className="block first-letter:uppercase">{detail}</span>}
          {hint && <span className="block">{hint}</span>}
          {request_id && <span className="mt-2 block font-mono text-[11px]">Request {request_id}</span>}
        </>
      }
    />
  );
}
