// biome-ignore-all lint/a11y/useSemanticElements: rows stand where their number says, which no <tr> can
// biome-ignore-all lint/a11y/useFocusableInteractive: what has the focus in a row is its link
import { Ellipsis, RotateCw } from "lucide-react";
import { memo, useSyncExternalStore } from "react";
import type { JobDocument } from "../../live";
import { shortId } from "../../shortId";
import { color, shownJob } from "../../state";
import { Ago } from "../../ui/Ago";
import { Lasted } from "../../ui/Lasted";
import { StatePill } from "../../ui/StatePill";
import { COLUMNS, MARK_CELL, MENU_CELL, STATE_CELL } from "./columns";
import type { ListStore } from "./listStore";
import { doneOf, noteOf } from "./says";

/** Where the router's paths begin. Its own links listen to the address, each of them; these are heard by the list. */
const BASE = "/console";

export interface RowProps {
  readonly id: string;
  readonly store: ListStore;
  readonly index: number;
  readonly top: number;
  readonly height: number;
  readonly isCard: boolean;
  readonly isChosen: boolean;
  readonly isAt: boolean;
}

/** One job. It hears of its own job only; what is pressed is understood by the list around it. */
export const Row = memo(function Row(props: RowProps) {
  const { id, store, index, top, height, isCard, isChosen, isAt } = props;
  const job = useSyncExternalStore(
    (wake) => store.subscribeRow(id, wake),
    () => store.get(id),
  );
  if (job === undefined) return null;
  const isGone = store.isGone(id);
  return (
    <div
      role="row"
      aria-rowindex={index + 2}
      data-job={id}
      data-gone={isGone || undefined}
      data-tip={isGone ? "No longer matches the filter" : undefined}
      className={`absolute inset-x-0 cursor-pointer border-line/70 border-b px-4 [contain:strict] hover:bg-hover ${isChosen ? "bg-chosen" : ""} ${isAt ? "shadow-[inset_2px_0_0_var(--accent)]" : ""}`}
      style={{ height, transform: `translateY(${top}px)` }}
    >
      <div className={`h-full ${isGone ? "opacity-65 grayscale" : ""}`}>
        {isCard ? (
          <Card job={job} isChosen={isChosen} isAt={isAt} />
        ) : (
          <Line job={job} isChosen={isChosen} isAt={isAt} />
        )}
      </div>
    </div>
  );
});

interface CellsProps {
  readonly job: JobDocument;
  readonly isChosen: boolean;
  readonly isAt: boolean;
}

function Line({ job, isChosen, isAt }: CellsProps) {
  return (
    <div role="presentation" className="flex h-full items-center gap-3">
      <Cell className={MARK_CELL}>
        <Mark job={job} isChosen={isChosen} isAt={isAt} />
      </Cell>
      <Cell className={`flex ${STATE_CELL}`}>
        <StatePill {...shownJob(job)} />
      </Cell>
      <Cell className={COLUMNS.id.cell}>
        <IdLink job={job} />
      </Cell>
      <Cell className={COLUMNS.recipe.cell}>{job.recipe}</Cell>
      <Cell className={`text-dim ${COLUMNS.caller.cell}`}>{job.caller}</Cell>
      <Cell className={COLUMNS.progress.cell}>
        <Bar job={job} />
      </Cell>
      <Cell className={COLUMNS.duration.cell}>
        <Lasted from={job.started_at} to={job.finished_at} />
      </Cell>
      <Cell className={`text-dim ${COLUMNS.age.cell}`}>
        <Ago at={job.created_at} />
      </Cell>
      <Cell className={COLUMNS.retry.cell}>
        <RetryOf job={job} />
      </Cell>
      <Cell className={COLUMNS.note.cell}>
        <NoteText job={job} />
      </Cell>
      <Cell className={MENU_CELL}>
        <MenuButton job={job} isAt={isAt} />
      </Cell>
    </div>
  );
}

/** The same on a narrow screen, in three lines. */
function Card({ job, isChosen, isAt }: CellsProps) {
  return (
    <div role="presentation" className="flex h-full flex-col justify-center gap-1.5">
      <div role="presentation" className="flex items-center gap-2">
        <Cell className="shrink-0">
          <Mark job={job} isChosen={isChosen} isAt={isAt} />
        </Cell>
        <Cell className="flex shrink-0">
          <StatePill {...shownJob(job)} />
        </Cell>
        <Cell className="min-w-0 flex-1 truncate font-medium">{job.recipe}</Cell>
        <Cell className="shrink-0 text-dim">
          <Ago at={job.created_at} />
        </Cell>
        <Cell className="shrink-0">
          <MenuButton job={job} isAt={isAt} />
        </Cell>
      </div>
      <div role="presentation" className="flex items-center gap-3 pl-6">
        <Cell>
          <IdLink job={job} />
        </Cell>
        <Cell className="ml-auto">
          <Bar job={job} />
        </Cell>
      </div>
      <div role="presentation" className="flex items-center gap-3 pl-6 text-[12px]">
        <Cell className="min-w-0 flex-1 truncate">
          <NoteText job={job} />
        </Cell>
        <Cell className="shrink-0 text-dim">
          <Lasted from={job.started_at} to={job.finished_at} />
        </Cell>
      </div>
    </div>
  );
}

function Cell({ className = "", children }: { readonly className?: string; readonly children: React.ReactNode }) {
  return (
    <div role="cell" className={className}>
      {children}
    </div>
  );
}

function Mark({ job, isChosen, isAt }: CellsProps) {
  return (
    <input
      type="checkbox"
      data-act="choose"
      tabIndex={isAt ? 0 : -1}
      readOnly
      checked={isChosen}
      aria-label={`Choose ${job.recipe} ${shortId(job.job_id)}`}
      className="block size-3.5 cursor-pointer accent-accent"
    />
  );
}

function IdLink({ job }: { readonly job: JobDocument }) {
  return (
    <a
      href={`${BASE}/jobs/${job.job_id}`}
      data-open={job.job_id}
      data-tip={job.job_id}
      className="font-mono text-[12px] text-accent underline-offset-2 hover:underline"
    >
      {shortId(job.job_id)}
    </a>
  );
}

function Bar({ job }: { readonly job: JobDocument }) {
  const { done, of, part } = doneOf(job);
  return (
    <span className="flex items-center gap-2">
      <span aria-hidden="true" className="h-1.5 w-20 shrink-0 overflow-hidden rounded-full bg-line">
        <span
          className="block h-full origin-left"
          style={{ transform: `scaleX(${part})`, background: color(shownJob(job).look) }}
        />
      </span>
      <span className="text-[12px] text-dim tabular-nums">
        {done}/{of}
        <span className="sr-only"> steps</span>
      </span>
    </span>
  );
}

function RetryOf({ job }: { readonly job: JobDocument }) {
  if (job.retry_of === null) return null;
  return (
    <a
      href={`${BASE}/jobs/${job.retry_of}`}
      data-open={job.retry_of}
      data-tip={`A retry of ${job.retry_of}`}
      className="inline-flex items-center gap-1 font-mono text-[12px] text-dim underline-offset-2 hover:text-fg hover:underline"
    >
      <RotateCw size={11} aria-hidden="true" />
      <span className="sr-only">Retry of </span>
      {shortId(job.retry_of)}
    </a>
  );
}

function NoteText({ job }: { readonly job: JobDocument }) {
  const note = noteOf(job);
  if (note === null) return null;
  return (
    <span data-tip={note.text} className={note.isError ? "text-danger" : "text-dim"}>
      {note.text}
    </span>
  );
}

function MenuButton({ job, isAt }: Pick<CellsProps, "job" | "isAt">) {
  return (
    <button
      type="button"
      data-act="menu"
      tabIndex={isAt ? 0 : -1}
      aria-haspopup="menu"
      aria-label={`Actions for ${job.recipe} ${shortId(job.job_id)}`}
      className="grid size-6 cursor-pointer place-items-center rounded-md text-dim hover:bg-panel2 hover:text-fg"
    >
      <Ellipsis size={14} aria-hidden="true" />
    </button>
  );
}
