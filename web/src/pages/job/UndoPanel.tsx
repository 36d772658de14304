import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "wouter";
import { ask } from "../../api/client";
import { color, type Look } from "../../state";
import { Button } from "../../ui/Button";
import { StateIcon } from "../../ui/StateIcon";
import type { UndoPlan, UndoStep } from "./types";
import { lookOfUndo, saidOfEffects, wordOfUndo } from "./undo";

const EVERY_MS = 2_000;

interface UndoPanelProps {
  readonly id: string;
  /** Why the user may not act, if so. */
  readonly why: string | undefined;
}

/** The undo of a job beside its graph: what would run, what runs, or what ran, in order. */
export default function UndoPanel({ id, why }: UndoPanelProps) {
  const queries = useQueryClient();
  const key = ["job", id, "undo"];
  const { data } = useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ask<UndoPlan>(`/jobs/${id}/undo`, { signal }),
    // The undo is another job, so nothing of this job's stream tells how far it is.
    refetchInterval: (query) => (query.state.data?.effects === "undoing" ? EVERY_MS : false),
    retry: false,
  });
  const start = useMutation({
    mutationFn: () => ask(`/jobs/${id}/undo`, { method: "POST" }),
    onSettled: () => queries.invalidateQueries({ queryKey: key }),
  });
  if (data === undefined || data.steps.length === 0) return null;
  return (
    <aside aria-label="Undo" className="w-64 shrink-0 overflow-y-auto border-line border-l px-3 py-2 text-[12px]">
      <h3 className="mb-1 font-medium text-[11px] text-dim uppercase tracking-wide">Undo</h3>
      <p className="mb-2">{saidOfEffects(data)}</p>
      <ol className="space-y-1">
        {data.steps.map((step) => (
          <Line key={step.no} step={step} />
        ))}
      </ol>
      {data.final.length > 0 && <p className="mt-2 text-dim">Stays, because it is final: {data.final.join(", ")}</p>}
      <div className="mt-3 flex flex-wrap items-center gap-2">
        {data.effects === "standing" && (
          <Button busy={start.isPending} why={why} onClick={() => start.mutate()}>
            Undo now
          </Button>
        )}
        {data.undo_job_id !== null && (
          <Link className="underline" href={`/jobs/${data.undo_job_id}`}>
            Open the undo job
          </Link>
        )}
      </div>
    </aside>
  );
}

function Line({ step }: { readonly step: UndoStep }) {
  const look: Look = lookOfUndo(step.status);
  return (
    <li className="flex items-center gap-1.5">
      <StateIcon look={look} size={12} />
      <span className="min-w-0 flex-1 truncate">
        {step.step} <span className="text-dim">by {step.run}</span>
      </span>
      <span style={{ color: color(look) }}>{wordOfUndo(step.status)}</span>
    </li>
  );
}
