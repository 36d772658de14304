import { CircleAlert } from "lucide-react";
import { type Problem, problemOf } from "../api/client";
import { Button } from "./Button";
import { Copy } from "./Copy";

interface ProblemViewProps {
  /** A problem of the API, or any other thrown value. */
  readonly problem: Problem | Error | unknown;
  readonly onRetry?: (() => void) | undefined;
}

/** What went wrong, what to do, and the number under which the server has written it down. */
export function ProblemView({ problem, onRetry }: ProblemViewProps) {
  const { title, detail, hint, request_id, errors } = problemOf(problem).body;
  return (
    <div role="alert" className="flex min-w-0 gap-3 rounded-lg border border-danger/40 bg-danger/8 px-3 py-2.5">
      <CircleAlert size={15} aria-hidden="true" className="mt-0.5 shrink-0 text-danger" />
      <div className="flex min-w-0 flex-1 flex-col gap-1">
        <p className="font-semibold">{title}</p>
        {detail !== undefined && detail !== title && <p className="break-words">{detail}</p>}
        {errors !== undefined && errors.length > 0 && (
          <ul className="list-disc pl-4">
            {errors.map((one) => (
              <li key={one.pointer + one.message} className="break-words">
                <code className="font-mono text-[12px]">{one.pointer}</code> {one.message}
              </li>
            ))}
          </ul>
        )}
        {hint !== undefined && hint !== null && <p className="text-dim">{hint}</p>}
        <div className="mt-1 flex flex-wrap items-center gap-x-3 gap-y-1">
          {onRetry !== undefined && <Button onClick={onRetry}>Try again</Button>}
          {request_id !== undefined && (
            <span className="flex min-w-0 items-center gap-1 text-[12px] text-dim">
              Request
              <code className="truncate font-mono">{request_id}</code>
              <Copy text={request_id} label="Copy the request id" />
            </span>
          )}
        </div>
      </div>
    </div>
  );
}
