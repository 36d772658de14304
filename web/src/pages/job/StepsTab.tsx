import { useVirtualizer } from "@tanstack/react-virtual";
import { ArrowDown, ArrowUp, ListFilter } from "lucide-react";
import { memo, useMemo, useRef, useState } from "react";
import { lookOf } from "../../graph/look";
import { useCounts, useStep } from "../../graph/store";
import type { StepNo } from "../../graph/types";
import { LOOKS, saidOf, wordOf } from "../../state";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Input } from "../../ui/Input";
import { Lasted } from "../../ui/Lasted";
import { ProblemView } from "../../ui/ProblemView";
import { Select } from "../../ui/Select";
import { StatePill } from "../../ui/StatePill";
import { useSearch } from "../../use/useSearch";
import type { TabProps } from "./JobView";
import type { JobLive } from "./jobLive";
import { type Column, lookNamed, tableOf } from "./stepTable";
import { useNowAndThen, useStructure } from "./useJobLive";
import { useLoad } from "./useLoad";
import { useRoving } from "./useRoving";

const FIRST = { find: "", state: "", sort: "" };
const ROW = 34;
const REFRESH_MS = 500;
const COLUMNS: readonly { readonly id: Column; readonly label: string; readonly className: string }[] = [
  { id: "step", label: "Step", className: "" },
  { id: "state", label: "State", className: "w-36 @max-sm:w-30" },
  { id: "attempt", label: "Attempt", className: "w-24 @max-xl:hidden" },
  { id: "started", label: "Started", className: "w-28 @max-xl:hidden" },
  { id: "took", label: "Took", className: "w-28 @max-md:w-20" },
];

/** Every step as a row: the content of the graph, for screen readers and for sorting. */
export default function StepsTab({ id, live, selected, onSelect }: TabProps) {
  const [search, setSearch] = useSearch(FIRST);
  const structure = useStructure(live);
  const load = useLoad("steps", id, live);
  const [isHeld, setHeld] = useState(false);
  const scroller = useRef<HTMLDivElement>(null);
  const look = lookNamed(search.state);
  const wanted = useMemo(() => ({ text: search.find, look, sort: search.sort }), [search.find, look, search.sort]);
  const version = useNowAndThen(live, () => live.graph.version(), REFRESH_MS);
  const held = useRef<{ readonly key: unknown; readonly rows: readonly StepNo[] } | null>(null);
  const rows = useMemo(() => {
    void version;
    // Under the pointer nothing changes places: states change where they are, and the order when it leaves.
    if (isHeld && held.current?.key === wanted) return held.current.rows;
    held.current = { key: wanted, rows: tableOf(structure, live.graph, wanted, Date.now()) };
    return held.current.rows;
  }, [structure, live, wanted, version, isHeld]);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  const roving = useRoving(rows, selected, (at) => virtual.scrollToIndex(at));
  const items = virtual.getVirtualItems();
  const before = items[0]?.start ?? 0;
  const after = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const isFiltered = search.find !== "" || look !== null;
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex flex-wrap items-center gap-2 px-4 py-2">
        <div className="w-56 max-sm:w-full">
          <Input
            type="search"
            aria-label="Find steps"
            placeholder="Find steps"
            data-filter
            value={search.find}
            onChange={(event) => setSearch({ find: event.target.value })}
          />
        </div>
        <StateSelect live={live} value={look ?? ""} onChange={(state) => setSearch({ state })} />
        <p role="status" className="text-[12px] text-dim tabular-nums">
          {rows.length.toLocaleString("en")} of {structure.nodes.length.toLocaleString("en")} steps
          {!load.isDone && load.problem === null && ` · loading times, ${load.loaded.toLocaleString("en")} so far`}
        </p>
      </div>
      {load.problem !== null && (
        <div className="px-4 pb-2">
          <ProblemView problem={load.problem} onRetry={load.retry} />
        </div>
      )}
      {rows.length === 0 ? (
        <Empty
          icon={ListFilter}
          title={isFiltered ? "No step matches" : "No steps yet"}
          line={isFiltered ? "No step has this name and this state." : "The steps of the recipe appear here."}
          action={isFiltered && <Button onClick={() => setSearch({ find: "", state: "" })}>Show all steps</Button>}
        />
      ) : (
        <div
          ref={scroller}
          className="@container min-h-0 flex-1 overflow-auto"
          onPointerEnter={() => setHeld(true)}
          onPointerLeave={() => setHeld(false)}
        >
          <table
            className="w-full table-fixed border-collapse text-left"
            aria-label="Steps"
            aria-rowcount={rows.length + 1}
            onKeyDown={roving.onKeyDown}
          >
            <thead className="sticky top-0 z-10 bg-bg">
              <tr aria-rowindex={1}>
                {COLUMNS.map((column) => (
                  <Heading key={column.id} {...column} sort={search.sort} onSort={(sort) => setSearch({ sort })} />
                ))}
                <th
                  scope="col"
                  className="h-8 border-line border-b px-3 font-medium text-[11px] text-dim @max-3xl:hidden"
                >
                  Queue, or what it waits for
                </th>
              </tr>
            </thead>
            <Room height={before} />
            <tbody>
              {items.map((item) => (
                <StepRow
                  key={rows[item.index]}
                  no={rows[item.index] as StepNo}
                  live={live}
                  at={item.index}
                  isSelected={rows[item.index] === selected}
                  isStop={item.index === roving.stop}
                  onSelect={onSelect}
                />
              ))}
            </tbody>
            <Room height={after} />
          </table>
        </div>
      )}
    </div>
  );
}

interface StateSelectProps {
  readonly live: JobLive;
  readonly value: string;
  readonly onChange: (value: string) => void;
}

function StateSelect({ live, value, onChange }: StateSelectProps) {
  const counts = useCounts(live.graph);
  const choices = LOOKS.filter((look) => (counts[look] ?? 0) > 0 || look === value).map((look) => ({
    value: look,
    label: `${wordOf(look)} (${(counts[look] ?? 0).toLocaleString("en")})`,
  }));
  const all = [{ value: "", label: "Every state" }, ...choices];
  return <Select aria-label="State" value={value} onChange={onChange} choices={all} className="w-44" />;
}

interface HeadingProps {
  readonly id: Column;
  readonly label: string;
  readonly className: string;
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}

function Heading({ id, label, className, sort, onSort }: HeadingProps) {
  const way = sort === id ? "ascending" : sort === `-${id}` ? "descending" : "none";
  const next = way === "none" ? id : way === "ascending" ? `-${id}` : "";
  const Icon = way === "descending" ? ArrowDown : ArrowUp;
  return (
    <th scope="col" aria-sort={way} className={`h-8 border-line border-b px-1 text-left first:pl-2 ${className}`}>
      <button
        type="button"
        onClick={() => onSort(next)}
        className="inline-flex cursor-pointer items-center gap-1 rounded px-2 font-medium text-[11px] text-dim leading-6 hover:text-fg"
      >
        {label}
        <Icon size={11} aria-hidden="true" className={way === "none" ? "invisible" : ""} />
      </button>
    </th>
  );
}

interface StepRowProps {
  readonly no: StepNo;
  readonly live: JobLive;
  readonly at: number;
  readonly isSelected: boolean;
  readonly isStop: boolean;
  readonly onSelect: (no: StepNo) => void;
}

const StepRow = memo(function StepRow({ no, live, at, isSelected, isStop, onSelect }: StepRowProps) {
  const step = useStep(live.graph, no);
  if (step === undefined) return null;
  const isFan = step.fan !== undefined;
  const status = live.fact(no)?.status;
  return (
    <tr
      aria-rowindex={at + 2}
      aria-selected={isSelected}
      data-row={at}
      className={`h-[34px] border-line/70 border-b hover:bg-hover ${isSelected ? "bg-chosen" : ""}`}
    >
      <th scope="row" className="truncate px-1 pl-2 text-left font-normal">
        <button
          type="button"
          tabIndex={isStop ? 0 : -1}
          data-step-row={no}
          onClick={() => onSelect(no)}
          className={`max-w-full cursor-pointer truncate rounded px-2 text-left leading-7 hover:underline ${step.parent === undefined ? "font-medium" : "pl-6 text-dim"}`}
        >
          {step.label}
          {isFan && <span className="text-dim"> ×{step.fan?.total ?? "?"}</span>}
        </button>
      </th>
      <td className="px-3 @max-sm:px-1">
        <StatePill look={lookOf(step)} word={isFan || status === undefined ? undefined : saidOf(status)} />
      </td>
      <td className="px-3 tabular-nums @max-xl:hidden">{step.attempt === 0 ? <Dash /> : step.attempt}</td>
      <td className="px-3 @max-xl:hidden">{step.startedAt === null ? <Dash /> : <Ago at={step.startedAt} />}</td>
      <td className="px-3">
        {step.startedAt === null ? <Dash /> : <Lasted from={step.startedAt} to={step.finishedAt} />}
      </td>
      <td className="truncate px-3 text-dim @max-3xl:hidden">{step.meta}</td>
    </tr>
  );
});

/** Where the rows are that are not drawn. */
function Room({ height }: { readonly height: number }) {
  if (height <= 0) return null;
  return (
    <tbody aria-hidden="true">
      <tr style={{ height }} />
    </tbody>
  );
}

function Dash() {
  return <span className="text-dim">–</span>;
}
