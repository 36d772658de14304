import { X } from "lucide-react";
import { Button } from "../../ui/Button";
import { IconButton } from "../../ui/IconButton";
import { jobsWord } from "./BulkResult";
import type { Action } from "./bulk";

interface ChoiceBarProps {
  readonly count: number;
  /** How many of the chosen each act means something to. */
  readonly can: Readonly<Record<Action, number>>;
  readonly whyNot: string | undefined;
  readonly onAct: (action: Action) => void;
  readonly onAll: () => void;
  readonly onClear: () => void;
}

/** What can be done with the rows that were chosen. */
export function ChoiceBar({ count, can, whyNot, onAct, onAll, onClear }: ChoiceBarProps) {
  return (
    <section
      aria-label="Chosen jobs"
      className="flex flex-wrap items-center gap-2 border-line border-t bg-panel px-4 py-2 shadow-float"
    >
      <span role="status" className="font-medium tabular-nums">
        {jobsWord(count)} chosen
      </span>
      <Button variant="ghost" onClick={onAll}>
        Choose all in the list
      </Button>
      <span className="ml-auto" />
      <Button
        why={whyNot ?? (can.retry === 0 ? "None of these jobs failed" : undefined)}
        onClick={() => onAct("retry")}
      >
        Retry {can.retry > 0 ? can.retry.toLocaleString("en") : ""}
      </Button>
      <Button
        variant="danger"
        why={whyNot ?? (can.cancel === 0 ? "All of these jobs have ended" : undefined)}
        onClick={() => onAct("cancel")}
      >
        Cancel {can.cancel > 0 ? can.cancel.toLocaleString("en") : ""}
      </Button>
      <IconButton label="Choose none" hint="Esc" onClick={onClear}>
        <X size={14} aria-hidden="true" />
      </IconButton>
    </section>
  );
}
