import { Link } from "wouter";
import { DEFAULT_QUEUES, queuesOf } from "../../queues";
import { shortId } from "../../shortId";
import { color } from "../../state";
import { Copy } from "../../ui/Copy";
import { Lasted } from "../../ui/Lasted";
import { Places } from "../../ui/Places";
import { StateIcon } from "../../ui/StateIcon";
import { relative } from "../../ui/time";
import { useNow } from "../../use/useNow";
import { MARKED, useMarked } from "../useMarked";
import { heartbeatOf, type RunningStep, servicesOf, type Worker } from "./workers";

const SHOWN_MAX = 8;
const HEARTBEAT = { good: ["succeeded", "alive"], late: ["retrying", "late"], overdue: ["failed", "overdue"] } as const;

interface WorkerCardProps {
  readonly worker: Worker;
  /** How many milliseconds the server's clock is ahead of ours. */
  readonly ahead: number;
  /** The address names this worker. */
  readonly isMarked: boolean;
}

/** One process: where it is, what it takes, the state of its heartbeat, and the steps that it runs. */
export function WorkerCard({ worker, ahead, isMarked }: WorkerCardProps) {
  const box = useMarked<HTMLElement>(isMarked);
  const { named, isDefault } = queuesOf(worker.queues);
  return (
    <article
      ref={box}
      aria-current={isMarked || undefined}
      aria-label={`Worker ${worker.host} ${worker.pid}`}
      className={`flex min-w-0 flex-col rounded-xl border bg-panel ${isMarked ? MARKED : "border-line"}`}
    >
      <header className="flex items-start gap-3 px-4 pt-3 pb-2">
        <div className="min-w-0 flex-1">
          <h2 className="flex items-center gap-1 font-semibold">
            <span className="truncate">{worker.host}</span>
            <span className="font-normal text-dim tabular-nums">:{worker.pid}</span>
            <Copy text={worker.id} label="Copy the worker's id" />
          </h2>
          <p className="text-[12px] text-dim">
            up <Lasted from={worker.started_at} />
          </p>
        </div>
        <Heartbeat worker={worker} ahead={ahead} />
      </header>
      <div className="flex flex-col gap-1.5 px-4 pb-3">
        <Places taken={worker.running} all={worker.concurrency} word="busy" />
        <ul aria-label="Queues" className="flex flex-wrap gap-1">
          {isDefault && (
            <li data-tip={DEFAULT_QUEUES.join("\n")} className="px-0.5 text-[12px] text-dim">
              default queues
            </li>
          )}
          {named.map((queue) => (
            <li
              key={queue}
              className="max-w-full truncate rounded border border-line bg-panel2 px-1.5 font-mono text-[11px] text-dim"
            >
              {queue}
            </li>
          ))}
        </ul>
        <ServiceStates worker={worker} />
      </div>
      <Hands steps={worker.steps} all={worker.running} />
    </article>
  );
}

function Heartbeat({ worker, ahead }: Omit<WorkerCardProps, "isMarked">) {
  const now = useNow() + ahead;
  const [look, word] = HEARTBEAT[heartbeatOf(worker, now)];
  return (
    <p className="flex shrink-0 items-center gap-1.5 text-[12px]">
      <span aria-hidden="true" className="size-2 rounded-full" style={{ background: color(look) }} />
      <span className="font-medium" style={{ color: color(look) }}>
        {word}
      </span>
      <span className="w-14 whitespace-nowrap text-right text-dim tabular-nums" data-tip="Since its last heartbeat">
        {relative(Date.parse(worker.seen_at), now)}
      </span>
    </p>
  );
}

/** The state of the process's services: one line if all are ok, else the problem of each faulty service. */
function ServiceStates({ worker }: { readonly worker: Worker }) {
  const told = servicesOf(worker);
  if (told === null) return <p className="text-[12px] text-dim">services: not reported yet</p>;
  if (told.faults.length === 0) return <p className="text-[12px] text-dim">{told.count} services, all ok</p>;
  return (
    <ul aria-label="Services with a fault" className="text-[12px]">
      {told.faults.map((one) => (
        <li key={one.name} className="flex items-start gap-1.5" style={{ color: color("retrying") }}>
          <span className="font-mono">{one.name}</span>
          <span>{one.state}</span>
        </li>
      ))}
    </ul>
  );
}

function Hands({ steps, all }: { readonly steps: readonly RunningStep[]; readonly all: number }) {
  const shown = steps.slice(0, SHOWN_MAX);
  if (steps.length === 0) return null;
  return (
    <ul aria-label="Runs now" className="mt-auto border-line border-t py-1">
      {shown.map((one) => (
        <li key={`${one.job_id} ${one.no}`} className="flex items-center gap-2 px-4">
          <StateIcon look="running" size={12} />
          <Link
            href={`/jobs/${one.job_id}?step=${one.no}`}
            className="min-w-0 flex-1 truncate leading-6 hover:text-accent hover:underline"
          >
            {one.step} <span className="font-mono text-[11px] text-dim">{shortId(one.job_id)}</span>
          </Link>
          <span className="text-[12px] text-dim">
            <Lasted from={one.since} />
          </span>
        </li>
      ))}
      {all > shown.length && <li className="px-4 py-0.5 text-dim">and {all - shown.length} more</li>}
    </ul>
  );
}
