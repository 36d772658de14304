import { color, type Look, wordOf } from "../state";
import { StateIcon } from "./StateIcon";

interface StatePillProps {
  readonly look: Look;
  /** What is said instead of the look's own word: "Timed out", "Quarantined". */
  readonly word?: string | undefined;
  /** The API's own words. */
  readonly tip?: string | undefined;
}

/** A state is never colour alone: a colour, a drawing and a word. */
export function StatePill({ look, word, tip }: StatePillProps) {
  return (
    <span
      data-look={look}
      data-tip={tip}
      className="state-pill inline-flex h-5 max-w-full items-center gap-1 rounded-full border pr-2 pl-1.5 font-medium text-[11px] leading-none"
      style={{ "--c": color(look) } as React.CSSProperties}
    >
      <StateIcon look={look} size={11} />
      <span className="truncate">{word ?? wordOf(look)}</span>
    </span>
  );
}
