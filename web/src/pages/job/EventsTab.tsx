import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowUp, ScrollText } from "lucide-react";
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Input } from "../../ui/Input";
import { ProblemView } from "../../ui/ProblemView";
import { Select } from "../../ui/Select";
import { Skeleton } from "../../ui/Skeleton";
import { useSearch } from "../../use/useSearch";
import { EventRow } from "./EventRow";
import { filteredLines, gapsIn, type Line, mergedLines } from "./eventList";
import type { TabProps } from "./JobView";
import { useEventPages } from "./useEventPages";
import { useLines } from "./useJobLive";

const FIRST = { type: "", of: "" };
const ROW = 30;
const TOP_PX = 8;
const TORN_MS = 2_000;

/** Events, the newest first. New lines come in on top, unless the list is scrolled. */
export default function EventsTab({ id, live, onSelect }: TabProps) {
  const [search, setSearch] = useSearch(FIRST);
  const pages = useEventPages(id);
  const heard = useLines(live);
  const scroller = useRef<HTMLDivElement>(null);
  const [isReading, setReading] = useState(false);
  const [isOver, setOver] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  /** The newest line that is shown while the list is scrolled. */
  const [upTo, setUpTo] = useState(Number.POSITIVE_INFINITY);
  const isHeld = isReading || isOver;

  const all = useMemo(() => mergedLines(pages.events, heard), [pages.events, heard]);
  const newest = all[0]?.seq ?? 0;
  // More was heard than is kept: what lies between is on a page by now.
  const isTorn = gapsIn(all) > 0;
  const { refetch, error } = pages;
  useEffect(() => {
    if (!isTorn || error !== null) return;
    const timer = setInterval(() => void refetch(), TORN_MS);
    return () => clearInterval(timer);
  }, [isTorn, error, refetch]);
  const limit = isHeld ? Math.min(upTo, newest) : newest;
  const hold = (is: boolean): void => {
    if (is && !isHeld) setUpTo(newest);
  };
  const labelOf = useCallback((no: number): string => live.graph.get(no)?.label ?? `step ${no}`, [live]);
  const shown = useMemo(
    () =>
      filteredLines(
        all.filter((line) => line.seq <= limit),
        { type: search.type, step: search.of },
        labelOf,
      ),
    [all, limit, search.type, search.of, labelOf],
  );
  const waiting = all.findIndex((line) => line.seq <= limit);
  const virtual = useVirtualizer({
    count: shown.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    getItemKey: (at) => (shown[at] as Line).seq,
    overscan: 16,
  });
  const toTop = (): void => {
    setUpTo(Number.POSITIVE_INFINITY);
    setReading(false);
    setOver(false);
    scroller.current?.scrollTo({ top: 0 });
  };
  const toggle = (seq: number): void =>
    setOpen((before) => {
      const next = new Set(before);
      if (!next.delete(seq)) next.add(seq);
      return next;
    });
  const isFiltered = search.type !== "" || search.of !== "";
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-2">
        <TypeSelect lines={all} value={search.type} onChange={(type) => setSearch({ type })} />
        <div className="w-44">
          <Input
            type="search"
            aria-label="Of which step"
            placeholder="Of which step"
            data-filter
            value={search.of}
            onChange={(event) => setSearch({ of: event.target.value })}
          />
        </div>
        <p role="status" className="text-[12px] text-dim tabular-nums">
          {shown.length.toLocaleString("en")} {isFiltered ? `of ${all.length.toLocaleString("en")} loaded` : "events"}
          {!isFiltered && pages.hasNextPage && ` of ${newest.toLocaleString("en")}`}
        </p>
      </div>
      {pages.error !== null && (
        <div className="px-4 pb-2">
          <ProblemView problem={pages.error} onRetry={pages.refetch} />
        </div>
      )}
      {pages.isPending ? (
        <Skeleton rows={10} label="Loading events" />
      ) : shown.length === 0 && !pages.hasNextPage ? (
        <Empty
          icon={ScrollText}
          title={isFiltered ? "No event matches" : "No events yet"}
          line={isFiltered ? "None of the loaded events of this job matches." : "Events appear here as they happen."}
          action={isFiltered && <Button onClick={() => setSearch({ type: "", of: "" })}>Show all events</Button>}
        />
      ) : (
        <div className="relative min-h-0 flex-1">
          {waiting > 0 && (
            <button
              type="button"
              onClick={toTop}
              className="absolute top-2 left-1/2 z-10 inline-flex h-7 -translate-x-1/2 cursor-pointer items-center gap-1.5 rounded-full border border-line2 bg-tip px-3 font-medium text-accent shadow-float"
            >
              <ArrowUp size={13} aria-hidden="true" />
              {waiting.toLocaleString("en")} new
            </button>
          )}
          <div
            ref={scroller}
            role="feed"
            aria-label="Events"
            aria-busy={pages.isFetchingNextPage}
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key
            tabIndex={0}
            className="@container h-full overflow-auto border-line border-t outline-offset-[-2px]"
            onScroll={({ currentTarget }) => {
              const is = currentTarget.scrollTop > TOP_PX;
              hold(is);
              setReading(is);
            }}
            onPointerMove={() => {
              hold(true);
              setOver(true);
            }}
            onPointerLeave={() => setOver(false)}
          >
            <div className="relative w-full" style={{ height: virtual.getTotalSize() }}>
              {virtual.getVirtualItems().map((item) => {
                const line = shown[item.index] as Line;
                return (
                  <EventRow
                    key={line.seq}
                    id={id}
                    line={line}
                    at={item.index}
                    top={item.start}
                    measure={virtual.measureElement}
                    label={line.no === null ? null : labelOf(line.no)}
                    isOpen={open.has(line.seq)}
                    onToggle={toggle}
                    onSelect={onSelect}
                  />
                );
              })}
            </div>
            <div className="grid place-items-center p-3">
              {pages.hasNextPage ? (
                <Button busy={pages.isFetchingNextPage} onClick={() => pages.fetchNextPage()}>
                  Load older events
                </Button>
              ) : (
                <span className="text-[12px] text-dim">This is the first event.</span>
              )}
            </div>
          </div>
        </div>
      )}
    </div>
  );
}

interface TypeSelectProps {
  readonly lines: readonly Line[];
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function TypeSelect({ lines, value, onChange }: TypeSelectProps) {
  const types = useMemo(() => [...new Set(lines.map((line) => line.type))].sort(), [lines]);
  const choices = [
    { value: "", label: "Every type" },
    { value: "job", label: "job.* (of the job itself)" },
    { value: "step", label: "step.* (of its steps)" },
    ...[...new Set([...types, ...(value === "" || value === "job" || value === "step" ? [] : [value])])].map(
      (type) => ({
        value: type,
        label: type,
      }),
    ),
  ];
  return <Select aria-label="Type" value={value} onChange={onChange} choices={choices} className="w-48" />;
}
