import { ChevronDown, ChevronRight } from "lucide-react";
import type { StepNo } from "../../graph/types";
import { color } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import { absolute, lasted } from "../../ui/time";
import { usePreference } from "../../use/usePreference";
import { outcomeWord } from "./outcome";
import type { Row, Segment } from "./timeline";
import type { Span } from "./timeScale";

interface TimelineRowProps {
  readonly row: Row;
  readonly top: number;
  readonly span: Span;
  readonly now: number;
  readonly isSelected: boolean;
  readonly onSelect: (no: StepNo) => void;
  readonly onToggle: () => void;
  readonly onLookAt: (part: Span) => void;
}

export function TimelineRow({ row, top, span, now, isSelected, onSelect, onToggle, onLookAt }: TimelineRowProps) {
  const [zone] = usePreference("zone");
  const first = row.segments[0];
  const lookAt = (): void => {
    if (first === undefined) return;
    const last = row.segments.at(-1) as Segment;
    onLookAt({ from: first.from, to: Math.max(first.from + 10, last.to ?? now) });
  };
  return (
    <div
      className={`absolute inset-x-0 flex h-[26px] items-center hover:bg-hover ${isSelected ? "bg-chosen" : ""}`}
      style={{ transform: `translateY(${top}px)` }}
    >
      <div className="flex w-[200px] shrink-0 items-center pl-1 max-sm:w-[112px]">
        {row.children === undefined ? (
          <span className={row.depth === 1 ? "w-9 shrink-0" : "w-6 shrink-0"} />
        ) : (
          <button
            type="button"
            aria-expanded={row.isOpen}
            aria-label={`${row.isOpen ? "Fold" : "Open"} ${row.label}`}
            onClick={onToggle}
            className="grid size-6 shrink-0 cursor-pointer place-items-center rounded text-dim hover:bg-panel2 hover:text-fg"
          >
            {row.isOpen ? <ChevronDown size={13} /> : <ChevronRight size={13} />}
          </button>
        )}
        <button
          type="button"
          aria-pressed={isSelected}
          onClick={() => onSelect(row.id)}
          className="flex min-w-0 cursor-pointer items-center gap-1.5 rounded pr-1 text-left text-[12px] hover:underline"
        >
          <StateIcon look={row.look} size={11} />
          <span className={`truncate ${row.segments.length === 0 ? "text-dim" : ""}`}>{row.label}</span>
          <span className="sr-only">{row.look}</span>
        </button>
      </div>
      {/* biome-ignore lint/a11y/noStaticElementInteractions: a shortcut; the buttons above do the same */}
      <div data-track className="relative mr-3 h-full min-w-0 flex-1 overflow-hidden" onDoubleClick={lookAt}>
        {row.segments.map((segment) => (
          <Bar
            key={`${segment.kind}${segment.from}`}
            segment={segment}
            span={span}
            now={now}
            tip={tipOf(segment, row.label, now, zone)}
            onPress={() => onSelect(row.id)}
          />
        ))}
      </div>
    </div>
  );
}

interface BarProps {
  readonly segment: Segment;
  readonly span: Span;
  readonly now: number;
  readonly tip: string;
  readonly onPress: () => void;
}

const SHAPE: Readonly<Record<Segment["kind"], string>> = {
  run: "top-[7px] h-3 rounded-[3px]",
  wait: "top-2.5 h-1.5 rounded-[2px]",
  queue: "top-[12.5px] h-px opacity-70",
  span: "top-2.5 h-1.5 rounded-full opacity-70",
};

function Bar({ segment, span, now, tip, onPress }: BarProps) {
  const wide = span.to - span.from;
  const to = segment.to ?? Math.max(now, segment.from);
  if (to < span.from || segment.from > span.to) return null;
  const left = Math.max(-1, ((segment.from - span.from) / wide) * 100);
  const right = Math.min(101, ((to - span.from) / wide) * 100);
  const tone = color(segment.look);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the step's own button stands before it
    // biome-ignore lint/a11y/noStaticElementInteractions: as above
    <span
      data-tip={tip}
      onClick={onPress}
      className={`absolute min-w-[2px] cursor-pointer ${SHAPE[segment.kind]} ${segment.to === null ? "rounded-r-none" : ""}`}
      style={
        {
          left: `${left}%`,
          width: `${Math.max(0, right - left)}%`,
          background: segment.kind === "wait" ? hatched(tone) : tone,
        } as React.CSSProperties
      }
    />
  );
}

/** Waiting is not work: it looks different without its colour too. */
export function hatched(tone: string): string {
  const faint = `color-mix(in oklab, ${tone} 28%, transparent)`;
  return `repeating-linear-gradient(115deg, ${tone} 0 2px, ${faint} 2px 5px)`;
}

function tipOf(segment: Segment, label: string, now: number, zone: string): string {
  const took = lasted((segment.to ?? now) - segment.from);
  const what = {
    run: `attempt ${segment.attempt ?? ""} · ${segment.outcome === undefined ? segment.look : outcomeWord(segment.outcome).toLowerCase()}`,
    wait: segment.look === "retrying" ? "waits for the next attempt" : "waits",
    queue: "in the queue",
    span: "all children",
  }[segment.kind];
  const worker = segment.worker ? `\nworker ${segment.worker}` : "";
  const till = segment.to === null ? "still going on" : absolute(segment.to, zone);
  return `${label} · ${what} · ${took}\n${absolute(segment.from, zone)}\n${till}${worker}`;
}
