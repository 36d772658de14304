import { X } from "lucide-react";
import type { JobState } from "../../api/schemas";
import {
  ACTIVITIES,
  type Activity,
  activityLook,
  activityWord,
  isOver,
  JOB_STATES,
  jobLook,
  type Look,
  wordOf,
} from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import { useOverviewData } from "../../ui/useBadges";
import { type Filter, isNone, type Term, termsOf, without } from "./filter";

/** How jobs end, by how it looks: one chip each. What open jobs are doing has chips of its own. */
const ENDED: readonly Look[] = ["failed", "succeeded", "cancelled"];
const ENDINGS: readonly { readonly look: Look; readonly status: readonly JobState[] }[] = ENDED.map((look) => ({
  look,
  status: JOB_STATES.filter((status) => isOver(status) && jobLook(status) === look),
}));

interface ChipsProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
}

/** Open jobs are filtered by activity, ended jobs by status: a chip of one kind releases the chips of the other. */
export function Chips({ filter, onChange }: ChipsProps) {
  const totals = useOverviewData()?.totals;
  // The server counts all open jobs: with another condition the figures would be of something else.
  const isPlain = isNone({ ...filter, activity: [] });
  const turn = (activity: Activity): void => {
    const isOn = filter.activity.includes(activity);
    const rest = filter.activity.filter((one) => one !== activity);
    onChange({ ...filter, status: [], activity: isOn ? rest : [...rest, activity] });
  };
  return (
    <fieldset className="no-scrollbar m-0 flex min-w-0 items-center gap-1.5 overflow-x-auto border-0 px-4 pb-2.5">
      <legend className="sr-only">States</legend>
      {ACTIVITIES.map((activity) => (
        <Chip
          key={activity}
          look={activityLook(activity)}
          word={activityWord(activity)}
          count={isPlain ? totals?.[activity] : undefined}
          pressed={filter.activity.includes(activity)}
          onPress={() => turn(activity)}
        />
      ))}
      <span aria-hidden="true" className="h-4 w-px shrink-0 bg-line" />
      {ENDINGS.map(({ look, status }) => {
        const isOn = status.every((one) => filter.status.includes(one));
        const isPartly = !isOn && status.some((one) => filter.status.includes(one));
        const rest = filter.status.filter((one) => !status.includes(one));
        return (
          <Chip
            key={look}
            look={look}
            word={wordOf(look)}
            pressed={isPartly ? "mixed" : isOn}
            onPress={() => onChange({ ...filter, activity: [], event: "", status: isOn ? rest : [...rest, ...status] })}
          />
        );
      })}
    </fieldset>
  );
}

interface ChipProps {
  readonly look: Look;
  readonly word: string;
  readonly count?: number | undefined;
  readonly pressed: boolean | "mixed";
  readonly onPress: () => void;
}

function Chip({ look, word, count, pressed, onPress }: ChipProps) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      onClick={onPress}
      className="flex h-6 shrink-0 cursor-pointer items-center gap-1.5 rounded-full border border-line bg-panel px-2.5 text-[12px] hover:border-line2 aria-[pressed=mixed]:border-accent aria-pressed:border-accent aria-pressed:bg-chosen"
    >
      <StateIcon look={look} size={12} />
      {word}
      {count !== undefined && count > 0 && <span className="text-dim tabular-nums">{count.toLocaleString("en")}</span>}
    </button>
  );
}

/** The filter as it stands, where it is only shown. */
export function TermList({ filter }: Pick<ChipsProps, "filter">) {
  return (
    <ul aria-label="The filter" className="flex flex-wrap gap-1.5">
      {termsOf(filter).map((term: Term) => (
        <li
          key={`${term.key}:${term.value}`}
          className="max-w-full truncate rounded-full border border-line bg-panel px-2.5 font-mono text-[12px] leading-[22px]"
        >
          {term.key}:{term.value}
        </li>
      ))}
    </ul>
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
            aria-label={`Remove ${term.key}:${term.value}`}
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
