import { Link } from "wouter";
import { shortId } from "../../shortId";
import { Ago } from "../../ui/Ago";
import { Lasted } from "../../ui/Lasted";
import { StateIcon } from "../../ui/StateIcon";
import { faultOf } from "./fault";
import { outcomeLook, outcomeWord } from "./outcome";
import type { Attempt } from "./types";

const SHOWN_MAX = 20;

/** The newest attempt comes first: it matters most. */
export function AttemptList({ attempts }: { readonly attempts: readonly Attempt[] }) {
  const newest = [...attempts].sort((a, b) => b.attempt - a.attempt);
  return (
    <ol className="flex flex-col">
      {newest.slice(0, SHOWN_MAX).map((attempt) => (
        <One key={attempt.attempt} attempt={attempt} />
      ))}
      {newest.length > SHOWN_MAX && <li className="text-[12px] text-dim">and {newest.length - SHOWN_MAX} before</li>}
    </ol>
  );
}

function One({ attempt }: { readonly attempt: Attempt }) {
  const fault = faultOf(attempt.error);
  return (
    <li className="flex flex-col border-line border-b py-1.5 last:border-b-0">
      <div className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
        <StateIcon look={outcomeLook(attempt.outcome)} size={13} />
        <span className="font-medium tabular-nums">#{attempt.attempt}</span>
        <span>{outcomeWord(attempt.outcome)}</span>
        <span className="text-dim">
          <Lasted from={attempt.started_at} to={attempt.finished_at} />
        </span>
        <span className="ml-auto text-[12px] text-dim">
          <Ago at={attempt.started_at} />
        </span>
      </div>
      {attempt.worker !== null && (
        <Link
          href={`/workers?worker=${encodeURIComponent(attempt.worker)}`}
          className="ml-[21px] self-start font-mono text-[11px] text-dim hover:text-accent hover:underline"
          data-tip={`Worker ${attempt.worker}`}
        >
          {shortId(attempt.worker)}
        </Link>
      )}
      {fault !== null && <p className="ml-[21px] line-clamp-3 break-words text-[12px] text-danger">{fault.message}</p>}
    </li>
  );
}
