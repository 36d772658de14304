import { Link } from "wouter";
import { color } from "../../state";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Lasted } from "../../ui/Lasted";
import { StateIcon } from "../../ui/StateIcon";
import { useNow } from "../../use/useNow";
import { pulseOf, type RunningStep, type Worker } from "./workers";

const SHOWN_MAX = 8;
const PULSES = { good: ["succeeded", "alive"], late: ["retrying", "late"], overdue: ["failed", "overdue"] } as const;

/** One process: where it is, what it takes, how its heart beats and what it has in hand. */
export function WorkerCard({ worker }: { readonly worker: Worker }) {
  const used = worker.running.length;
  return (
    <article
      aria-label={`Worker ${worker.host} ${worker.pid}`}
      className="flex min-w-0 flex-col rounded-xl border border-line bg-panel"
    >
      <header className="flex items-start gap-3 px-4 pt-3 pb-2">
        <div className="min-w-0 flex-1">
          <h3 className="flex items-center gap-1 font-semibold">
            <span className="truncate">{worker.host}</span>
            <span className="font-normal text-dim tabular-nums">:{worker.pid}</span>
            <Copy text={worker.id} label="Copy the worker's id" />
          </h3>
          <p className="text-[12px] text-dim">
            up <Lasted from={worker.started_at} />
            {worker.version ? ` · ${worker.version}` : ""}
          </p>
        </div>
        <Pulse worker={worker} />
      </header>
      <div className="flex flex-col gap-1.5 px-4 pb-3">
        <Slots used={used} all={worker.concurrency} />
        <ul aria-label="Queues" className="flex flex-wrap gap-1">
          {worker.queues.map((queue) => (
            <li
              key={queue}
              className="max-w-full truncate rounded border border-line bg-panel2 px-1.5 font-mono text-[11px] text-dim"
            >
              {queue}
            </li>
          ))}
        </ul>
      </div>
      <Hands steps={worker.running} />
    </article>
  );
}

function Pulse({ worker }: { readonly worker: Worker }) {
  const [look, word] = PULSES[pulseOf(worker, useNow())];
  return (
    <p className="flex shrink-0 items-center gap-1.5 text-[12px]" style={{ color: color(look) }}>
      <span aria-hidden="true" className="size-2 rounded-full" style={{ background: color(look) }} />
      <span className="font-medium">{word}</span>
      <span className="text-dim">
        <Ago at={worker.seen_at} />
      </span>
    </p>
  );
}

/** One block for each step it may run at once; many are drawn as one bar. */
function Slots({ used, all }: { readonly used: number; readonly all: number }) {
  const blocks = Math.min(all, 32);
  const filled = all === 0 ? 0 : Math.round((used / all) * blocks);
  return (
    <div className="flex items-center gap-2 text-[12px]">
      <span aria-hidden="true" className="flex h-2 flex-1 gap-[2px]">
        {Array.from({ length: blocks }, (_, i) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: a block is only its place
          <span
            key={i}
            className="h-full flex-1 rounded-[2px]"
            style={{ background: i < filled ? color("running") : "var(--panel2)" }}
          />
        ))}
      </span>
      <span className="whitespace-nowrap text-dim tabular-nums">
        {used} of {all} busy
      </span>
    </div>
  );
}

export function Hands({ steps }: { readonly steps: readonly RunningStep[] }) {
  if (steps.length === 0) return null;
  return (
    <ul aria-label="Runs now" className="mt-auto border-line border-t py-1">
      {steps.slice(0, SHOWN_MAX).map((one) => (
        <li key={`${one.job_id} ${one.no}`} className="flex items-center gap-2 px-4 py-0.5">
          <StateIcon look="running" size={12} />
          <Link
            href={`/jobs/${one.job_id}?step=${one.no}`}
            className="min-w-0 flex-1 truncate hover:text-accent hover:underline"
          >
            {one.step} <span className="font-mono text-[11px] text-dim">{one.job_id.slice(-8)}</span>
          </Link>
          <span className="text-[12px] text-dim">
            <Lasted from={one.since} />
          </span>
        </li>
      ))}
      {steps.length > SHOWN_MAX && <li className="px-4 py-0.5 text-dim">and {steps.length - SHOWN_MAX} more</li>}
    </ul>
  );
}
