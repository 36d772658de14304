import { relationsOf } from "../../graph/relations";
import { BAR_ORDER } from "../../graph/text";
import type { Fan, StepNo } from "../../graph/types";
import { color, type Look, wordOf } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import type { JobLive } from "./jobLive";
import { Section } from "./Section";
import { useStructure } from "./useJobLive";

/** The children that a user looks for. */
const NOTED: readonly Look[] = ["failed", "retrying", "waiting", "running"];
const NOTED_MAX = 12;

interface ChildListProps {
  readonly live: JobLive;
  readonly no: StepNo;
  readonly fan: Fan;
  readonly onSelect: (no: StepNo) => void;
}

/** A fan-out by the states of its children, with links to the important ones. */
export function ChildList({ live, no, fan, onSelect }: ChildListProps) {
  const children = relationsOf(useStructure(live)).children.get(no) ?? [];
  const all = Math.max(1, fan.total ?? children.length);
  const noted = NOTED.flatMap((look) => children.filter((id) => live.graph.get(id)?.look === look)).slice(0, NOTED_MAX);
  return (
    <Section title={`Children ${fan.total?.toLocaleString("en") ?? ""}`}>
      <div className="flex h-1.5 overflow-hidden rounded-full bg-line" aria-hidden="true">
        {BAR_ORDER.filter((look) => look !== "pending" && (fan.by[look] ?? 0) > 0).map((look) => (
          <span key={look} style={{ width: `${((fan.by[look] ?? 0) / all) * 100}%`, background: color(look) }} />
        ))}
      </div>
      <ul className="mt-1.5 flex flex-wrap gap-x-3 gap-y-1 text-[12px]">
        {BAR_ORDER.filter((look) => (fan.by[look] ?? 0) > 0).map((look) => (
          <li key={look} className="flex items-center gap-1 tabular-nums">
            <StateIcon look={look} size={11} />
            {fan.by[look]?.toLocaleString("en")} <span className="text-dim">{wordOf(look).toLowerCase()}</span>
          </li>
        ))}
      </ul>
      {noted.length > 0 && (
        <ul className="mt-2 flex flex-wrap gap-1">
          {noted.map((id) => (
            <li key={id}>
              <button
                type="button"
                onClick={() => onSelect(id)}
                className="inline-flex cursor-pointer items-center gap-1 rounded border border-line bg-panel px-1.5 text-[12px] leading-[20px] hover:border-line2"
              >
                <StateIcon look={live.graph.get(id)?.look ?? "pending"} size={11} />
                {live.graph.get(id)?.label}
              </button>
            </li>
          ))}
        </ul>
      )}
    </Section>
  );
}
