import { useNow } from "../use/useNow";
import { usePreference } from "../use/usePreference";
import { absolute, lasted } from "./time";

interface LastedProps {
  readonly from: string | number | null | undefined;
  /** Without it, it still goes on, and the figure moves. */
  readonly to?: string | number | null | undefined;
}

/** How long something took, or has taken so far; from when to when if one points at it. */
export function Lasted({ from, to }: LastedProps) {
  const start = momentOf(from);
  if (Number.isNaN(start)) return <span className="text-dim">–</span>;
  const end = momentOf(to);
  return Number.isNaN(end) ? <Going start={start} /> : <Figure start={start} end={end} isOver />;
}

function Going({ start }: { readonly start: number }) {
  return <Figure start={start} end={Math.max(start, useNow())} isOver={false} />;
}

interface FigureProps {
  readonly start: number;
  readonly end: number;
  readonly isOver: boolean;
}

function Figure({ start, end, isOver }: FigureProps) {
  const [zone] = usePreference("zone");
  const tip = `${absolute(start, zone)}\n${isOver ? absolute(end, zone) : "still going on"}`;
  // What goes on is drawn once a second: tenths would only pretend.
  const ms = isOver ? end - start : Math.floor((end - start) / 1_000) * 1_000;
  return (
    <span data-tip={tip} className="whitespace-nowrap tabular-nums">
      {!isOver && ms < 10_000 ? `${Math.floor(ms / 1_000)} s` : lasted(ms)}
    </span>
  );
}

function momentOf(at: string | number | null | undefined): number {
  if (at === null || at === undefined) return Number.NaN;
  return typeof at === "number" ? at : Date.parse(at);
}
