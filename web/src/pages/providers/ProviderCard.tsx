import { Link } from "wouter";
import { shortId } from "../../shortId";
import { Ago } from "../../ui/Ago";
import { Lasted } from "../../ui/Lasted";
import { Places } from "../../ui/Places";
import { StateIcon } from "../../ui/StateIcon";
import { StatePill } from "../../ui/StatePill";
import { useNow } from "../../use/useNow";
import { MARKED, useMarked } from "../useMarked";
import { nextRequest, type Provider, rateText, stateOf } from "./providers";

const SHOWN_MAX = 12;

interface ProviderCardProps {
  readonly provider: Provider;
  /** The address names this provider. */
  readonly isMarked: boolean;
}

/** One provider: its places and who has them, the line behind them, and whether it answers. */
export function ProviderCard({ provider, isMarked }: ProviderCardProps) {
  const box = useMarked<HTMLElement>(isMarked);
  const now = useNow();
  const said = stateOf(provider, now);
  const next = nextRequest(provider, now);
  return (
    <article
      ref={box}
      aria-current={isMarked || undefined}
      aria-label={`Provider ${provider.name}`}
      className={`flex min-w-0 flex-col rounded-xl border bg-panel ${isMarked ? MARKED : "border-line"}`}
    >
      <header className="flex items-center gap-3 px-4 pt-3 pb-2">
        <h2 className="min-w-0 flex-1 truncate font-semibold text-[14px]">{provider.name}</h2>
        <StatePill look={said.look} word={said.word} />
      </header>
      {(said.line !== "" || provider.error !== null) && (
        <div className="px-4 pb-2 text-[12px] text-dim">
          {said.line !== "" && <p>{said.line}</p>}
          {provider.error !== null && (
            <p className="break-words">
              <span className="text-danger">
                {provider.failures > 0 ? `${provider.failures} failed in a row: ` : "Last failure: "}
              </span>
              {provider.error}
            </p>
          )}
        </div>
      )}
      <dl className="grid grid-cols-3 border-line border-t px-4 py-2 text-[12px]">
        <Fact word="Rate">{rateText(provider.rate)}</Fact>
        <Fact word="Waiting">{provider.waiting.toLocaleString("en")}</Fact>
        <Fact word="Next request">{next === null ? "at once" : <Ago at={next} />}</Fact>
      </dl>
      <div className="flex flex-col gap-1 border-line border-t px-4 py-2.5">
        <Places taken={provider.held} all={provider.concurrency} word="places" />
        {provider.holders.length > 0 && (
          <ul aria-label="Steps with a slot">
            {provider.holders.slice(0, SHOWN_MAX).map((one) => (
              <li key={`${one.job_id} ${one.step} ${one.attempt}`} className="flex items-center gap-2">
                <StateIcon look="running" size={12} />
                <Link
                  href={`/jobs/${one.job_id}`}
                  className="min-w-0 flex-1 truncate leading-6 hover:text-accent hover:underline"
                >
                  {one.step} <span className="font-mono text-[11px] text-dim">{shortId(one.job_id)}</span>
                  {one.attempt > 1 && <span className="text-dim"> attempt {one.attempt}</span>}
                </Link>
                <span className="text-[12px] text-dim">
                  <Lasted from={one.since} />
                </span>
              </li>
            ))}
            {provider.held > SHOWN_MAX && <li className="text-dim">and {provider.held - SHOWN_MAX} more</li>}
          </ul>
        )}
      </div>
      {provider.first !== null && (
        <p className="mt-auto flex items-center gap-2 border-line border-t px-4 py-2 text-[12px]">
          <StateIcon look="queued" size={12} />
          <span className="shrink-0 text-dim">Next of {provider.waiting}:</span>
          <Link
            href={`/jobs/${provider.first.job_id}`}
            className="min-w-0 flex-1 truncate leading-6 hover:text-accent hover:underline"
          >
            {provider.first.step}{" "}
            <span className="font-mono text-[11px] text-dim">{shortId(provider.first.job_id)}</span>
          </Link>
          <span className="text-dim">
            <Lasted from={provider.first.since} />
          </span>
        </p>
      )}
    </article>
  );
}

function Fact({ word, children }: { readonly word: string; readonly children: React.ReactNode }) {
  return (
    <div className="flex min-w-0 flex-col">
      <dt className="text-dim">{word}</dt>
      <dd className="font-medium tabular-nums">{children}</dd>
    </div>
  );
}
