import { useQuery } from "@tanstack/react-query";
import { ChevronRight } from "lucide-react";
import { ask } from "../../api/client";
import type { EventType } from "../../api/schemas";
import type { StepNo } from "../../graph/types";
import { color, isJobState, isStepState, jobLook, stepLook } from "../../state";
import { Json } from "../../ui/Json";
import { ProblemView } from "../../ui/ProblemView";
import { absolute } from "../../ui/time";
import { usePreference } from "../../use/usePreference";
import { clock } from "./clock";
import type { Line } from "./eventList";
import type { EventDocument } from "./types";

interface EventRowProps {
  readonly id: string;
  readonly line: Line;
  readonly at: number;
  readonly top: number;
  readonly measure: (element: Element | null) => void;
  readonly label: string | null;
  readonly isOpen: boolean;
  readonly onToggle: (seq: number) => void;
  readonly onSelect: (no: StepNo) => void;
}

export function EventRow({ id, line, at, top, measure, label, isOpen, onToggle, onSelect }: EventRowProps) {
  const [zone] = usePreference("zone");
  const moment = Date.parse(line.at);
  return (
    <article
      ref={measure}
      data-index={at}
      aria-label={`${line.type} ${label ?? ""}`}
      className="absolute inset-x-0 border-line/60 border-b hover:bg-hover"
      style={{ transform: `translateY(${top}px)` }}
    >
      <div className="flex min-h-[29px] items-center gap-2 px-3 text-[12px] @max-md:gap-1.5 @max-md:px-1">
        <button
          type="button"
          aria-expanded={isOpen}
          aria-label={`Payload of event ${line.seq}`}
          onClick={() => onToggle(line.seq)}
          className="grid size-6 shrink-0 cursor-pointer place-items-center rounded text-dim hover:bg-panel2 hover:text-fg"
        >
          <ChevronRight size={13} aria-hidden="true" className={isOpen ? "rotate-90" : ""} />
        </button>
        <span className="w-10 shrink-0 text-right font-mono text-[11px] text-dim tabular-nums @max-2xl:hidden">
          {line.seq}
        </span>
        <time
          dateTime={line.at}
          data-tip={Number.isNaN(moment) ? undefined : absolute(moment, zone)}
          className="w-[88px] shrink-0 overflow-hidden font-mono @max-md:w-[53px] text-[11px] text-dim tabular-nums"
        >
          {clock(moment, zone)}
        </time>
        <span
          className="w-36 shrink-0 truncate font-mono @max-md:w-28 text-[11.5px]"
          style={{ color: toneOf(line.type) }}
        >
          {line.type}
        </span>
        {label !== null && line.no !== null ? (
          <button
            type="button"
            onClick={() => onSelect(line.no as StepNo)}
            className="min-w-0 cursor-pointer truncate hover:underline"
          >
            {label}
          </button>
        ) : (
          <span className="text-dim">job</span>
        )}
        {(line.attempt ?? 0) > 1 && <span className="shrink-0 text-dim @max-2xl:hidden">attempt {line.attempt}</span>}
        <span
          className="ml-auto max-w-40 shrink-0 truncate text-dim @max-2xl:hidden"
          data-tip={line.source ?? undefined}
        >
          {line.source}
        </span>
      </div>
      {isOpen && (
        <div className="px-4 pb-3 pl-11 @max-md:pl-4">
          {line.hasPayload ? <Payload value={line.payload} /> : <AskedPayload id={id} seq={line.seq} />}
        </div>
      )}
    </article>
  );
}

function Payload({ value }: { readonly value: unknown }) {
  if (value === null || value === undefined) return <p className="text-[12px] text-dim">This event has no payload.</p>;
  return <Json value={value} label="payload" />;
}

/** A line of the stream has no payload: opening the row asks for it. */
function AskedPayload({ id, seq }: { readonly id: string; readonly seq: number }) {
  const { data, error, refetch } = useQuery({
    queryKey: ["job", id, "event", seq],
    queryFn: ({ signal }) => ask<{ items: EventDocument[] }>(`/jobs/${id}/events?after=${seq - 1}&limit=1`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (error !== null) return <ProblemView problem={error} onRetry={refetch} />;
  if (data === undefined) return <p className="text-[12px] text-dim">Loading…</p>;
  return <Payload value={data.items[0]?.payload ?? null} />;
}

/** The colour of the state that the event tells; an event without a state has none. */
function toneOf(type: EventType): string | undefined {
  const [what, state = ""] = type.split(".");
  const status = state.toUpperCase();
  const job = what === "job" && isJobState(status) ? jobLook(status) : null;
  const look = what === "step" && isStepState(status) ? stepLook(status) : job;
  return look === null || look === "pending" ? undefined : color(look);
}
