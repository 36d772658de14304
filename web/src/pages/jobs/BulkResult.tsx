import { Link } from "wouter";
import { ProblemView } from "../../ui/ProblemView";
import type { Action, Progress, Result } from "./bulk";

export const VERB: Readonly<Record<Action, { title: string; done: string; passive: string }>> = {
  cancel: { title: "Cancel", done: "Cancelled", passive: "cancelled" },
  retry: { title: "Retry", done: "Retried", passive: "retried" },
};

export function jobsWord(count: number): string {
  return count === 1 ? "1 job" : `${count.toLocaleString("en")} jobs`;
}

export function BulkProgress({ action, progress }: { readonly action: Action; readonly progress: Progress }) {
  const seen = progress.done + progress.refused;
  return (
    <div role="status" className="flex flex-col gap-2 py-2">
      <progress
        aria-label={`${VERB[action].done} so far`}
        value={seen}
        max={progress.of}
        className="h-1.5 w-full accent-accent"
      />
      <span className="text-dim tabular-nums">
        {seen.toLocaleString("en")} of {jobsWord(progress.of)}
      </span>
    </div>
  );
}

const WHY: Readonly<Record<string, string>> = {
  wrong_state: "had changed in the meantime",
  not_found: "were gone",
  forbidden: "are not yours to change",
};

export function BulkResult({ action, result }: { readonly action: Action; readonly result: Result }) {
  const left = result.of - result.done - result.refused;
  return (
    <div role="status" className="flex flex-col gap-2 py-1">
      <p>
        {VERB[action].done} {jobsWord(result.done)} of {result.of.toLocaleString("en")}.
      </p>
      {Object.entries(result.codes).map(([code, many]) => (
        <p key={code} className="text-dim">
          {jobsWord(many)} {WHY[code] ?? `refused it (${code})`}.
        </p>
      ))}
      {left > 0 && result.problem === null && <p className="text-dim">{jobsWord(left)} no longer matched.</p>}
      {result.problem !== null && <ProblemView problem={result.problem} />}
      <p className="text-[12px] text-dim">
        This action is recorded in the{" "}
        <Link href="/audit" className="text-accent underline-offset-2 hover:underline">
          audit
        </Link>
        , with your reason.
      </p>
    </div>
  );
}
