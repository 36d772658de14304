import { X } from "lucide-react";
import { type Look, wordOf } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import { type Filter, type Term, termsOf, without } from "./filter";

/** The states by how they look: one chip each. */
const CHIPS: readonly { readonly look: Look; readonly status: readonly string[] }[] = [
  { look: "running", status: ["PROCESSING", "PREVIEW"] },
  { look: "queued", status: ["PENDING", "QUEUED", "DISPATCHING"] },
  { look: "waiting", status: ["APPROVAL_REQUIRED"] },
  { look: "failed", status: ["FAILED", "DENIED", "TIMEOUT", "EXPIRED", "OUTPUT_QUARANTINED"] },
  { look: "succeeded", status: ["COMPLETED"] },
  { look: "cancelled", status: ["CANCELLED"] },
];

interface ChipsProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
}

export function Chips({ filter, onChange }: ChipsProps) {
  return (
    <fieldset className="no-scrollbar m-0 flex min-w-0 items-center gap-1.5 overflow-x-auto border-0 px-4 pb-2.5">
      <legend className="sr-only">States</legend>
      {CHIPS.map(({ look, status }) => {
        const isOn = status.every((one) => filter.status.includes(one));
        const isPartly = !isOn && status.some((one) => filter.status.includes(one));
        const rest = filter.status.filter((one) => !status.includes(one));
        return (
          <button
            key={look}
            type="button"
            aria-pressed={isPartly ? "mixed" : isOn}
            onClick={() => onChange({ ...filter, status: isOn ? rest : [...rest, ...status] })}
            className="flex h-6 shrink-0 cursor-pointer items-center gap-1.5 rounded-full border border-line bg-panel px-2.5 text-[12px] hover:border-line2 aria-[pressed=mixed]:border-accent aria-pressed:border-accent aria-pressed:bg-chosen"
          >
            <StateIcon look={look} size={12} />
            {wordOf(look)}
          </button>
        );
      })}
    </fieldset>
  );
}

/** The filter as parts that can be taken away one by one. */
export function TermChips({ filter, onChange }: ChipsProps) {
  return (
    <ul aria-label="The filter" className="flex flex-wrap justify-center gap-1.5">
      {termsOf(filter).map((term: Term) => (
        <li key={`${term.key}:${term.value}`}>
          <button
            type="button"
            aria-label={`Take away ${term.key}:${term.value}`}
            onClick={() => onChange(without(filter, term))}
            className="flex h-6 max-w-72 cursor-pointer items-center gap-1.5 rounded-full border border-line bg-panel pr-1.5 pl-2.5 hover:border-line2"
          >
            <span className="truncate font-mono text-[12px]">
              {term.key}:{term.value}
            </span>
            <X size={12} aria-hidden="true" className="shrink-0 text-dim" />
          </button>
        </li>
      ))}
    </ul>
  );
}
