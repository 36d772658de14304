import { useVirtualizer } from "@tanstack/react-virtual";
import { Maximize, ZoomIn, ZoomOut } from "lucide-react";
import { useEffect, useMemo, useRef, useState } from "react";
import { FAN_SHOWN_MAX } from "../../graph/fold";
import type { StepNo } from "../../graph/types";
import { Empty } from "../../ui/Empty";
import { IconButton } from "../../ui/IconButton";
import { ProblemView } from "../../ui/ProblemView";
import { useNow } from "../../use/useNow";
import type { TabProps } from "./JobView";
import { hatched, TimelineRow } from "./TimelineRow";
import { type Row, rowsOf } from "./timeline";
import { marksOf, panned, type Span, wholeOf, zoomed } from "./timeScale";
import { useJob, useNowAndThen, useStructure } from "./useJobLive";
import { useLoad } from "./useLoad";

const ROW = 26;
const REFRESH_MS = 300;
const ZOOM = 1.6;
const WHEEL_RATE = 0.0015;
const PAN_PART = 0.2;

/** Every step over time: attempts as bars, waiting between them. */
export default function TimelineTab({ id, live, selected, onSelect }: TabProps) {
  const job = useJob(live);
  const structure = useStructure(live);
  const load = useLoad("attempts", id, live);
  const now = useNow(1_000);
  const [said, setSaid] = useState<ReadonlyMap<StepNo, boolean>>(new Map());
  const [view, setView] = useState<Span | null>(null);
  const scroller = useRef<HTMLElement>(null);
  const track = useRef<HTMLDivElement>(null);
  const width = useWidth(track);

  const began = Date.parse(job.started_at ?? job.created_at);
  const whole = wholeOf(began, job.finished_at === null ? null : Date.parse(job.finished_at), now);
  const span = view ?? whole;
  const version = useNowAndThen(live, () => live.graph.version() + live.attempts.version(), REFRESH_MS);
  const open = useMemo(() => {
    const all = new Set<StepNo>();
    for (const { id: no, fan } of structure.nodes) {
      if (fan !== undefined && (said.get(no) ?? (fan.total ?? 0) <= FAN_SHOWN_MAX)) all.add(no);
    }
    return all;
  }, [structure, said]);
  const rows = useMemo(() => {
    void [version, load.loaded];
    return rowsOf({ structure, store: live.graph, log: live.attempts, open, began });
  }, [structure, live, open, began, version, load.loaded]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });

  const zoom = (factor: number, at = (span.from + span.to) / 2): void => {
    const next = zoomed(span, at, factor, whole);
    setView(next.to - next.from >= whole.to - whole.from ? null : next);
  };
  const pan = (by: number): void => setView(view === null ? null : panned(span, by, whole));
  const wide = span.to - span.from;
  const latest = useRef({ zoom, pan, span, wide });
  latest.current = { zoom, pan, span, wide };
  useWheel(scroller, track, latest);
  const drag = useRef<number | null>(null);
  const press = (event: React.KeyboardEvent): void => {
    const act = {
      ...{ "+": () => zoom(1 / ZOOM), "=": () => zoom(1 / ZOOM), "-": () => zoom(ZOOM), "0": () => setView(null) },
      ...{ ArrowLeft: () => pan(-wide * PAN_PART), ArrowRight: () => pan(wide * PAN_PART) },
    }[event.key];
    if (act === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  };
  const marks = marksOf(span, began, width);
  const place = (at: number): string => `${((at - span.from) / wide) * 100}%`;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys for what is inside, which has its own roles
    <div className="flex h-full min-h-0 flex-col" onKeyDown={press}>
      <div className="flex items-center gap-1 px-4 py-1.5 text-[12px] text-dim">
        <IconButton label="Nearer" hint="+" onClick={() => zoom(1 / ZOOM)}>
          <ZoomIn size={14} aria-hidden="true" />
        </IconButton>
        <IconButton
          label="Farther"
          hint="-"
          onClick={() => zoom(ZOOM)}
          why={view === null ? "All of it is shown" : undefined}
        >
          <ZoomOut size={14} aria-hidden="true" />
        </IconButton>
        <IconButton label="All of it" hint="0" onClick={() => setView(null)}>
          <Maximize size={14} aria-hidden="true" />
        </IconButton>
        <Legend />
        {!load.isDone && load.problem === null && load.loaded > 0 && (
          <span role="status" className="tabular-nums">
            loading attempts, {load.loaded.toLocaleString("en")} so far
          </span>
        )}
      </div>
      {load.problem !== null && (
        <div className="px-4 pb-2">
          <ProblemView problem={load.problem} onRetry={load.retry} />
        </div>
      )}
      {rows.length === 0 && <Empty icon={Maximize} title="No steps yet" />}
      <section
        ref={scroller}
        aria-label="Timeline. Plus and minus zoom, the arrows move. The Steps tab has the same as a table."
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it has keys of its own
        tabIndex={0}
        className="min-h-0 flex-1 overflow-y-auto overflow-x-hidden border-line border-t outline-offset-[-2px]"
        onPointerDown={(event) => {
          const isTrack = (event.target as Element).closest("[data-track]") !== null;
          drag.current = isTrack && event.button === 0 ? event.clientX : null;
        }}
        onPointerMove={(event) => {
          if (drag.current === null || event.buttons === 0) return;
          pan(((drag.current - event.clientX) / Math.max(1, width)) * wide);
          drag.current = event.clientX;
        }}
        onPointerUp={() => {
          drag.current = null;
        }}
      >
        <div className="sticky top-0 z-20 flex h-6 border-line border-b bg-bg" aria-hidden="true">
          <div className="w-[200px] shrink-0 max-sm:w-[112px]" />
          <div ref={track} className="relative mr-3 min-w-0 flex-1 overflow-hidden">
            {marks.map((mark) => (
              <span
                key={mark.at}
                className="absolute top-1 -translate-x-1/2 whitespace-nowrap text-[10.5px] text-dim tabular-nums first:translate-x-0"
                style={{ left: place(mark.at) }}
                // At the very end there is no room for it.
                hidden={(mark.at - span.from) / wide > 0.97}
              >
                {mark.label}
              </span>
            ))}
          </div>
        </div>
        <div className="relative" style={{ height: virtual.getTotalSize() }}>
          <div
            className="pointer-events-none absolute inset-y-0 right-3 left-[200px] max-sm:left-[112px]"
            aria-hidden="true"
          >
            {marks.map((mark) => (
              <i key={mark.at} className="absolute inset-y-0 w-px bg-line/60" style={{ left: place(mark.at) }} />
            ))}
          </div>
          {virtual.getVirtualItems().map((item) => {
            const row = rows[item.index] as Row;
            return (
              <TimelineRow
                key={row.id}
                row={row}
                top={item.start}
                span={span}
                now={now}
                isSelected={row.id === selected}
                onSelect={onSelect}
                onToggle={() => setSaid((before) => new Map(before).set(row.id, row.isOpen !== true))}
                onLookAt={(part) => setView(zoomed(part, part.from, 1.1, whole))}
              />
            );
          })}
        </div>
      </section>
    </div>
  );
}

function Legend() {
  return (
    <ul className="mr-3 ml-2 flex flex-wrap gap-x-3 max-sm:hidden" aria-label="Legend">
      <li className="flex items-center gap-1.5">
        <i className="h-2.5 w-4 rounded-[3px] bg-(--st-succeeded)" /> attempt
      </li>
      <li className="flex items-center gap-1.5">
        <i className="h-1.5 w-4 rounded-[2px]" style={{ background: hatched("var(--st-waiting)") }} /> waits
      </li>
      <li className="flex items-center gap-1.5">
        <i className="h-px w-4 bg-dim" /> in the queue
      </li>
    </ul>
  );
}

function useWidth(box: React.RefObject<HTMLElement | null>): number {
  const [width, setWidth] = useState(800);
  useEffect(() => {
    if (box.current === null) return;
    const observer = new ResizeObserver(([entry]) => entry && setWidth(entry.contentRect.width));
    observer.observe(box.current);
    return () => observer.disconnect();
  }, [box]);
  return width;
}

interface Latest {
  readonly zoom: (factor: number, at?: number) => void;
  readonly pan: (by: number) => void;
  readonly span: Span;
  readonly wide: number;
}

/** The wheel scrolls the rows as everywhere; with Ctrl it zooms, sideways it pans. */
function useWheel(
  scroller: React.RefObject<HTMLElement | null>,
  track: React.RefObject<HTMLElement | null>,
  latest: React.RefObject<Latest>,
): void {
  useEffect(() => {
    const box = scroller.current;
    if (box === null) return;
    const onWheel = (event: WheelEvent): void => {
      const { zoom, pan, span, wide } = latest.current;
      const rect = track.current?.getBoundingClientRect();
      if (rect === undefined) return;
      const isSideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !event.metaKey && !isSideways) return;
      event.preventDefault();
      if (isSideways && !event.ctrlKey && !event.metaKey) pan(((event.deltaX || event.deltaY) / rect.width) * wide);
      else zoom(Math.exp(event.deltaY * WHEEL_RATE * 2), span.from + ((event.clientX - rect.left) / rect.width) * wide);
    };
    box.addEventListener("wheel", onWheel, { passive: false });
    return () => box.removeEventListener("wheel", onWheel);
  }, [scroller, track, latest]);
}
