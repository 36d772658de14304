import { ArrowLeft, Check, X } from "lucide-react";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { Json } from "../../ui/Json";
import { Kbd } from "../../ui/Kbd";
import { StatePill } from "../../ui/StatePill";
import { type Approval, approvedBy, askedBy, type Choice, lookOf, peopleText, titleOf, wordOf } from "./approvals";
import { TimeLeft } from "./TimeLeft";

interface DetailProps {
  readonly approval: Approval;
  readonly onDecide: (choice: Choice) => void;
}

/** What exactly will run, what the rule says, who may decide, and the votes so far. */
export function Detail({ approval, onDecide }: DetailProps) {
  const why = approval.may_decide ? undefined : sentence(approval.why_not ?? "You may not decide");
  return (
    <article aria-label={titleOf(approval)} className="flex min-w-0 flex-col gap-4 px-4 pb-8 lg:pt-1">
      <Link href={`/approvals${location.search}`} className="flex items-center gap-1 text-dim hover:text-fg lg:hidden">
        <ArrowLeft size={13} aria-hidden="true" /> All approvals
      </Link>
      <header className="flex flex-col gap-2">
        <div className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
          <h2 className="min-w-0 break-words font-semibold text-[17px] tracking-[-0.01em]">{titleOf(approval)}</h2>
          <StatePill look={lookOf(approval.state)} word={wordOf(approval.state)} />
          <TimeLeft of={approval} />
        </div>
        {approval.state === "PENDING" && (
          <div className="flex flex-wrap items-center gap-2">
            <Button
              variant="primary"
              size="large"
              icon={<Check size={14} aria-hidden="true" />}
              aria-keyshortcuts="a"
              why={why}
              onClick={() => onDecide("approve")}
            >
              Approve <Key>a</Key>
            </Button>
            <Button
              variant="danger"
              size="large"
              icon={<X size={14} aria-hidden="true" />}
              aria-keyshortcuts="r"
              why={why}
              onClick={() => onDecide("reject")}
            >
              Reject <Key>r</Key>
            </Button>
            {why !== undefined && <p className="text-[12px] text-dim">{why}.</p>}
          </div>
        )}
      </header>
      <Part title="What will run">
        <Facts of={approval} />
        {isFull(approval.show) && <Value value={approval.show} name="What the recipe shows" />}
        <Value value={approval.inputs} name="Inputs of the job" />
      </Part>
      <Part title="What the rule says">
        <p>
          Asked by {askedBy(approval)}
          {approval.reason !== "" && `: ${approval.reason}`}.{" "}
          {approval.need === 1 ? "One person must approve." : `${approval.need} people must approve.`} One rejection
          ends it. If nobody decides in time, it does not run.
        </p>
        <p className="text-dim">
          May decide: {approval.who.map(peopleText).join(", and of those ")}. Not the requester, nor a caller of a
          parent job.
        </p>
      </Part>
      <Part title={`Votes: ${approvedBy(approval).length} of ${approval.need}`}>
        {approval.votes.length === 0 && <p className="text-dim">Nobody has voted yet.</p>}
        <ul className="flex flex-col gap-1.5">
          {approval.votes.map((vote) => (
            <li key={vote.caller} className="min-w-0">
              <span className="font-medium">{vote.caller}</span>{" "}
              <span className={vote.choice === "approve" ? "text-good" : "text-danger"}>
                {vote.choice === "approve" ? "approves" : "rejects"}
              </span>{" "}
              <span className="text-dim">
                <Ago at={vote.at} />
              </span>
              {vote.reason !== "" && <p className="break-words text-dim">{vote.reason}</p>}
              {vote.note !== "" && <p className="break-words text-dim">Note: {vote.note}</p>}
            </li>
          ))}
        </ul>
      </Part>
    </article>
  );
}

function Facts({ of }: { readonly of: Approval }) {
  const labels = Object.entries(of.labels);
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
      <Fact name="Recipe">
        <Link href={`/recipes/${of.recipe}`} className="text-accent underline underline-offset-2">
          {of.recipe}
        </Link>
        {of.step !== null && ` at ${of.step}${of.index === null ? "" : ` #${of.index}`}`}
      </Fact>
      <Fact name="Job">
        <Link href={`/jobs/${of.job_id}`} className="break-all font-mono text-[12px] text-accent hover:underline">
          {of.job_id}
        </Link>
      </Fact>
      <Fact name="Requester">{of.requester}</Fact>
      <Fact name="Requested">
        <Ago at={of.created_at} />
      </Fact>
      {labels.length > 0 && (
        <Fact name="Labels">
          <span className="break-words">{labels.map(([name, value]) => `${name}=${value}`).join(", ")}</span>
        </Fact>
      )}
      <Fact name="Bound to">
        <span className="flex min-w-0 items-center gap-1">
          <code className="truncate font-mono text-[12px]">{of.subject}</code>
          <Copy text={of.subject} label="Copy the digest" />
        </span>
      </Fact>
    </dl>
  );
}

function Value({ name, value }: { readonly name: string; readonly value: unknown }) {
  return (
    <div className="flex min-w-0 flex-col gap-1">
      <h4 className="font-medium text-[12px] text-dim">{name}</h4>
      <Json value={value} label={name} />
    </div>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <>
      <dt className="text-dim">{name}</dt>
      <dd className="min-w-0">{children}</dd>
    </>
  );
}

function Part({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="flex min-w-0 flex-col gap-2.5 rounded-xl border border-line bg-panel px-4 py-3">
      <h3 className="font-semibold">{title}</h3>
      {children}
    </section>
  );
}

/** `aria-keyshortcuts` says it to those who cannot see it. */
function Key({ children }: { readonly children: string }) {
  return (
    <span aria-hidden="true" className="max-sm:hidden">
      <Kbd>{children}</Kbd>
    </span>
  );
}

function isFull(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length > 0;
}

function sentence(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}
