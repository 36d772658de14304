import { Fragment, type ReactNode } from "react";
import { Link } from "wouter";
import type { StepNo } from "../../graph/types";
import { shortId } from "../../shortId";
import { wordOf } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import type { JobLive } from "./jobLive";
import { stepNamed } from "./steps";
import type { ReasonDocument } from "./types";

interface WhyViewProps {
  readonly live: JobLive;
  readonly why: ReasonDocument;
  readonly onSelect: (no: StepNo) => void;
}

interface Holder {
  readonly job: string;
  readonly step: string;
}

/** What the step waits for, from the rows that the engine decides by, with links to the steps and jobs in its way. */
export function WhyView({ live, why, onSelect }: WhyViewProps) {
  const needs = texts(why.detail.needs);
  const holders = Array.isArray(why.detail.holders) ? (why.detail.holders as Holder[]) : [];
  const provider = typeof why.detail.provider === "string" ? why.detail.provider : null;
  return (
    <section aria-label="Why it waits" className="rounded-lg border border-line bg-field px-3 py-2.5">
      <h3 className="mb-1 font-medium text-[12px] text-dim">Why it waits</h3>
      <p className="break-words first-letter:uppercase">{why.because}.</p>
      {needs.length > 0 && (
        <Ways title="It needs">
          {needs.map((name) => (
            <StepLink key={name} live={live} name={name} onSelect={onSelect} />
          ))}
        </Ways>
      )}
      {holders.length > 0 && (
        <Ways title="Held by">
          {holders.slice(0, 10).map((holder) => (
            <Link
              key={holder.job + holder.step}
              href={`/jobs/${holder.job}`}
              className="rounded border border-line bg-panel px-1.5 font-mono text-[11px] text-accent leading-[20px] hover:border-line2"
            >
              {holder.step} of {shortId(holder.job)}
            </Link>
          ))}
        </Ways>
      )}
      <p className="mt-1.5 flex flex-wrap gap-3 text-[12px] empty:hidden">
        {why.detail.workers === 0 && <Go href="/workers">See the workers</Go>}
        {provider !== null && <Go href={`/providers?provider=${encodeURIComponent(provider)}`}>See the provider</Go>}
      </p>
    </section>
  );
}

function Go({ href, children }: { readonly href: string; readonly children: ReactNode }) {
  return (
    <Link href={href} className="text-accent hover:underline">
      {children}
    </Link>
  );
}

function Ways({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <div className="mt-2 flex flex-wrap items-center gap-1.5">
      <span className="text-[12px] text-dim">{title}</span>
      {children}
    </div>
  );
}

interface StepLinkProps {
  readonly live: JobLive;
  readonly name: string;
  readonly onSelect: (no: StepNo) => void;
}

/** A step by its name, with how it stands. */
export function StepLink({ live, name, onSelect }: StepLinkProps) {
  const no = stepNamed(live, name);
  const step = no === undefined ? undefined : live.graph.get(no);
  if (no === undefined || step === undefined) return <Fragment>{name}</Fragment>;
  return (
    <button
      type="button"
      onClick={() => onSelect(no)}
      className="inline-flex max-w-full cursor-pointer items-center gap-1 rounded border border-line bg-panel px-1.5 text-[12px] leading-[20px] hover:border-line2"
    >
      <StateIcon look={step.look} size={11} />
      <span className="truncate">{name}</span>
      <span className="sr-only">{wordOf(step.look)}</span>
    </button>
  );
}

function texts(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === "string") : [];
}
