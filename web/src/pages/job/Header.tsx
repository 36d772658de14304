import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { ask } from "../../api/client";
import { useCounts } from "../../graph/store";
import { BAR_ORDER } from "../../graph/text";
import { shortId } from "../../shortId";
import { isOver, shownJob, wordOf } from "../../state";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Lasted } from "../../ui/Lasted";
import { StateIcon } from "../../ui/StateIcon";
import { StatePill } from "../../ui/StatePill";
import { ActionBar } from "./ActionBar";
import type { JobLive } from "./jobLive";
import { activityOf } from "./steps";
import type { Costs, JobDocument } from "./types";
import { useJob, useNowAndThen } from "./useJobLive";

const COST_MS = 15_000;
const LOOK_MS = 300;

export function Header({ id, live }: { readonly id: string; readonly live: JobLive }) {
  const job = useJob(live);
  const doing = useNowAndThen(live, () => activityOf(live), LOOK_MS);
  return (
    <header className="shrink-0 px-4 pt-2.5 pb-1.5">
      <div className="flex min-h-8 flex-wrap items-center gap-x-3 gap-y-1.5">
        <h1 className="flex min-w-0 items-baseline gap-1.5 font-semibold text-[15px] tracking-[-0.01em]">
          <Link href={`/recipes/${encodeURIComponent(job.recipe)}`} className="truncate hover:underline">
            {job.recipe}
          </Link>
          {job.recipe_version !== null && (
            <span className="font-normal text-[12px] text-dim" data-tip={`Version ${job.recipe_version} of the recipe`}>
              v{job.recipe_version}
            </span>
          )}
        </h1>
        <StatePill {...shownJob({ ...job, activity: job.is_paused ? "paused" : doing })} />
        {job.deleted_at !== null && <StatePill look="cancelled" word="Deleted" />}
        <Numbers live={live} />
        <div className="ml-auto">
          <ActionBar live={live} />
        </div>
      </div>
      <dl className="mt-1 flex flex-wrap items-center gap-x-4 gap-y-0.5 text-[12px] text-dim">
        <Fact name="Job" isMono>
          <span data-tip={id}>{shortId(id)}</span>
          <Copy text={id} label="Copy the job's id" />
        </Fact>
        <Fact name="by">{job.caller}</Fact>
        <Fact name="submitted">
          <Ago at={job.created_at} />
        </Fact>
        <Fact name={isOver(job.status) ? "took" : "for"}>
          <Lasted from={job.started_at ?? job.created_at} to={job.finished_at} />
        </Fact>
        <Cost id={id} job={job} />
        {job.deadline_at !== null && !isOver(job.status) && (
          <Fact name="deadline">
            <Ago at={job.deadline_at} />
          </Fact>
        )}
        <Kin name="retry of" id={job.retry_of} />
        <Kin name="child of" id={job.parent_job} />
        <Labels labels={job.labels} />
      </dl>
    </header>
  );
}

const LABELS_MAX = 3;

/** The first few; a button shows the rest. */
function Labels({ labels }: { readonly labels: JobDocument["labels"] }) {
  const [isAll, setAll] = useState(false);
  const all = Object.entries(labels);
  const shown = isAll ? all : all.slice(0, LABELS_MAX);
  return (
    <>
      {shown.map(([name, value]) => (
        <Fact key={name} name="label">
          <Link
            href={`/jobs?label=${encodeURIComponent(`${name}=${value}`)}`}
            data-tip={`Jobs with ${name}=${value}`}
            className="max-w-48 truncate rounded border border-line bg-panel px-1.5 font-mono text-[11px] leading-[18px] hover:border-line2"
          >
            {name}={value}
          </Link>
        </Fact>
      ))}
      {all.length > shown.length && (
        <Fact name="label">
          <button type="button" onClick={() => setAll(true)} className="cursor-pointer text-accent hover:underline">
            {all.length - shown.length} more labels
          </button>
        </Fact>
      )}
    </>
  );
}

interface FactProps {
  readonly name: string;
  readonly isMono?: boolean;
  readonly children: ReactNode;
}

function Fact({ name, isMono = false, children }: FactProps) {
  return (
    <div className="flex min-w-0 items-center gap-1">
      <dt className={name === "label" ? "sr-only" : ""}>{name}</dt>
      <dd className={`flex min-w-0 items-center text-fg ${isMono ? "font-mono text-[11.5px]" : ""}`}>{children}</dd>
    </div>
  );
}

/** Steps by state: a fan-out counts as its children. */
function Numbers({ live }: { readonly live: JobLive }) {
  const counts = useCounts(live.graph);
  const shown = BAR_ORDER.filter((look) => (counts[look] ?? 0) > 0);
  return (
    <ul aria-label="Steps by state" className="flex flex-wrap items-center gap-x-2.5 gap-y-1 text-[12px] text-dim">
      {shown.map((look) => (
        <li key={look} data-tip={`${wordOf(look)} steps`} className="flex items-center gap-1 tabular-nums">
          <StateIcon look={look} size={12} />
          {counts[look]?.toLocaleString("en")}
          <span className="sr-only">{wordOf(look)}</span>
        </li>
      ))}
    </ul>
  );
}

function Kin({ name, id }: { readonly name: string; readonly id: string | null }) {
  if (id === null) return null;
  return (
    <Fact name={name} isMono>
      <Link href={`/jobs/${id}`} className="text-accent hover:underline" data-tip={id}>
        {shortId(id)}
      </Link>
    </Fact>
  );
}

/** Nothing is said of a job that cost nothing. */
function Cost({ id, job }: { readonly id: string; readonly job: JobDocument }) {
  const isOpen = !isOver(job.status);
  const { data } = useQuery({
    queryKey: ["job", id, "costs", isOpen],
    queryFn: ({ signal }) => ask<Costs>(`/jobs/${id}/costs`, { signal }),
    refetchInterval: isOpen ? COST_MS : false,
    retry: false,
  });
  if (data === undefined || Number(data.total) === 0) return null;
  const tokens = data.tokens_in + data.tokens_out;
  const most = data.budget === null ? "" : `\nBudget ${data.budget.most}`;
  return (
    <Fact name="cost">
      <span className="tabular-nums" data-tip={`${data.total} in all, ${tokens.toLocaleString("en")} tokens${most}`}>
        {short(data.total)}
      </span>
    </Fact>
  );
}

/** Money is decimal text: what is cut off is cut off, not rounded up to something that was never paid. */
function short(amount: string): string {
  const [whole = "0", part = ""] = amount.split(".");
  const cut = part.slice(0, 4).replace(/0+$/, "");
  return cut === "" ? whole : `${whole}.${cut}`;
}
