import { ChevronDown, ChevronRight } from "lucide-react";
import { memo, useEffect, useReducer } from "react";
import { color, type Look } from "../state";
import { BOX_HEAD } from "./fold";
import { ICON } from "./icons";
import { lookOf } from "./look";
import type { Item } from "./scene";
import { type GraphStore, useStep } from "./store";
import { BAR_ORDER, metaText, stateText } from "./text";
import type { Fan, StepNo } from "./types";

interface CardProps {
  readonly item: Item;
  readonly store: GraphStore;
  readonly isPlan: boolean;
  /** Only there to have the focus: the canvas paints it. */
  readonly isGhost: boolean;
  readonly isSelected: boolean;
  readonly isDimmed: boolean;
  readonly isCritical: boolean;
  /** One card at a time is in the order of the Tab key; the arrows lead to the others. */
  readonly isStop: boolean;
  readonly onSelect: (id: StepNo) => void;
  readonly onToggle: (id: StepNo) => void;
}

/** A step as a real button, over the place where the canvas would paint it. */
export const Card = memo(function Card(props: CardProps) {
  const { item, store, isPlan, isSelected } = props;
  const step = useStep(store, item.id);
  useTick(step?.look === "running");
  if (step === undefined) return null;
  const isHead = item.role === "box";
  if (props.isGhost) {
    return (
      <button
        type="button"
        data-step={item.id}
        aria-pressed={isSelected}
        onClick={() => props.onSelect(item.id)}
        className="absolute"
        style={{ left: item.x, top: item.y, width: item.width, height: isHead ? BOX_HEAD - 8 : item.height }}
      >
        <span className="sr-only">
          {step.label} {stateText(step)}
        </span>
      </button>
    );
  }
  const look = lookOf(step);
  const isPlanned = !isPlan && look === "pending" && !isSelected;
  // Dim is grey and not see-through: a button must stay legible.
  const tone = props.isDimmed ? "var(--line)" : isPlan ? "var(--dim)" : color(look);
  const isDashed = isPlan || look === "pending" || look === "waiting";
  const border = props.isCritical ? "var(--st-retrying)" : isSelected ? "var(--accent)" : tone;
  return (
    <div
      className="absolute"
      style={{
        left: item.x,
        top: item.y,
        width: item.width,
        height: isHead ? BOX_HEAD - 8 : item.height,
      }}
    >
      {step.fan !== undefined && !isHead && (
        <span
          className="absolute inset-0 translate-x-1 translate-y-1 rounded-lg border bg-panel"
          style={{ borderColor: tone }}
        />
      )}
      <button
        type="button"
        data-step={item.id}
        tabIndex={props.isStop ? 0 : -1}
        aria-pressed={isSelected}
        onClick={() => props.onSelect(item.id)}
        className="absolute inset-0 flex cursor-pointer items-center gap-2 overflow-hidden rounded-lg bg-panel px-2.5 text-left hover:bg-panel2 focus-visible:outline-offset-1"
        style={{
          border: `${isSelected || props.isCritical ? 2 : 1.2}px ${isDashed ? "dashed" : "solid"} ${border}`,
          boxShadow: isPlan ? "none" : `inset 3px 0 0 ${tone}`,
          paddingRight: step.fan === undefined ? undefined : 28,
        }}
      >
        {!isPlan && <StepIcon look={look} tone={tone} />}
        <span className="min-w-0 flex-1">
          <span
            className={`block truncate font-medium text-[12px] leading-4 ${isPlanned || props.isDimmed ? "text-dim" : ""}`}
          >
            {step.label}
            {step.fan?.total != null && <span className="text-dim"> ×{step.fan.total}</span>}
          </span>
          <span className="block truncate text-[10.5px] text-dim leading-4">{metaText(step, isPlan, Date.now())}</span>
          {!isPlan && <span className="sr-only">{stateText(step)}</span>}
        </span>
        {step.fan !== undefined && !isHead && !isPlan && <FanBar fan={step.fan} />}
      </button>
      {step.fan !== undefined && !isPlan && (
        <button
          type="button"
          tabIndex={props.isStop ? 0 : -1}
          aria-expanded={isHead}
          aria-label={isHead ? `Fold ${step.label}` : `Open ${step.label}`}
          onClick={() => props.onToggle(item.id)}
          className="absolute top-1 right-1 grid size-6 cursor-pointer place-items-center rounded text-dim hover:bg-line hover:text-fg"
        >
          {isHead ? <ChevronDown size={14} /> : <ChevronRight size={14} />}
        </button>
      )}
    </div>
  );
});

function StepIcon({ look, tone }: { readonly look: Look; readonly tone: string }) {
  return (
    <svg
      viewBox="0 0 16 16"
      width={15}
      height={15}
      aria-hidden="true"
      className={look === "running" ? "spin shrink-0" : "shrink-0"}
      fill="none"
      stroke={tone}
      strokeWidth={1.6}
      strokeLinecap="round"
    >
      <path d={ICON[look]} />
    </svg>
  );
}

function FanBar({ fan }: { readonly fan: Fan }) {
  const known = BAR_ORDER.reduce((sum, look) => sum + (fan.by[look] ?? 0), 0);
  const all = Math.max(known, fan.total ?? 0, 1);
  return (
    <span
      className="absolute right-1.5 bottom-0.5 left-1.5 flex h-[3px] overflow-hidden rounded-full"
      aria-hidden="true"
    >
      {BAR_ORDER.filter((look) => (fan.by[look] ?? 0) > 0).map((look) => (
        <span
          key={look}
          style={{
            width: `${((fan.by[look] ?? 0) / all) * 100}%`,
            background: look === "pending" ? "var(--line)" : color(look),
          }}
        />
      ))}
    </span>
  );
}

/** Draw again every second, while a duration counts on. */
function useTick(isOn: boolean): void {
  const [, tick] = useReducer((n: number) => n + 1, 0);
  useEffect(() => {
    if (!isOn) return;
    const timer = setInterval(tick, 1_000);
    return () => clearInterval(timer);
  }, [isOn]);
}
