import { useCallback, useEffect, useRef, useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { Dialog } from "../../ui/Dialog";
import { ProblemView } from "../../ui/ProblemView";
import { Spinner } from "../../ui/Spinner";
import { BulkProgress, BulkResult, jobsWord, VERB } from "./BulkResult";
import {
  type Action,
  bulkFilter,
  countBulk,
  isCountChanged,
  type Progress,
  type Result,
  runBulk,
  runEach,
} from "./bulk";
import { TermList } from "./Chips";
import type { Wanted } from "./filter";

/** What an act is for: everything that a filter finds, or these. */
export type Target =
  | { readonly kind: "filter"; readonly wanted: Wanted }
  | { readonly kind: "these"; readonly ids: readonly string[]; readonly left: number };

interface BulkDialogProps {
  readonly action: Action;
  readonly target: Target;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

type Stage =
  | { readonly kind: "counting"; readonly note?: string }
  | { readonly kind: "asking"; readonly count: number; readonly isMore: boolean; readonly note?: string | undefined }
  | { readonly kind: "running"; readonly progress: Progress }
  | { readonly kind: "over"; readonly result: Result }
  | { readonly kind: "failed"; readonly problem: Problem };

/** Count first, ask with the count, act, and say what came of it. */
export default function BulkDialog({ action, target, onClose, onDone }: BulkDialogProps) {
  const [stage, setStage] = useState<Stage>(() =>
    target.kind === "these" ? { kind: "asking", count: target.ids.length, isMore: false } : { kind: "counting" },
  );
  // The act is for what was counted: jobs made later are not part of it.
  const [filter, setFilter] = useState(() => (target.kind === "filter" ? bulkFilter(target.wanted, Date.now()) : null));
  const isStarted = useRef(false);

  const count = useCallback(
    async (note?: string): Promise<void> => {
      if (target.kind !== "filter") return;
      const now = bulkFilter(target.wanted, Date.now());
      setFilter(now);
      try {
        const { matched, is_more: isMore } = await countBulk(action, now);
        setStage({ kind: "asking", count: matched, isMore, note });
      } catch (error) {
        setStage({ kind: "failed", problem: problemOf(error) });
      }
    },
    [action, target],
  );
  useEffect(() => {
    if (target.kind === "filter") void count();
  }, [count, target.kind]);

  const run = async (reason: string, many: number): Promise<void> => {
    const show = (progress: Progress): void => {
      isStarted.current = true;
      setStage({ kind: "running", progress });
    };
    try {
      if (target.kind === "these") show({ done: 0, refused: 0, of: many });
      const result =
        target.kind === "these"
          ? await runEach(action, target.ids, reason, show)
          : await runBulk(action, filter ?? bulkFilter(target.wanted, Date.now()), many, reason, show);
      isStarted.current = true;
      setStage({ kind: "over", result });
      onDone();
    } catch (error) {
      if (!isCountChanged(error)) throw error;
      // Asked anew, with the count of now.
      await count(`${problemOf(error).message}. Nothing was done yet.`);
      throw error;
    }
  };

  const verb = VERB[action];
  if (stage.kind === "asking" && stage.count > 0) {
    const text = `${stage.isMore ? "at least " : ""}${jobsWord(stage.count)}`;
    return (
      <Confirm
        key={`${stage.count} ${stage.note}`}
        title={`${verb.title} ${text}`}
        effect={<Effect action={action} target={target} text={text} note={stage.note} />}
        count={stage.count}
        needsReason
        action={`${verb.title} ${jobsWord(stage.count)}`}
        isHarmless={action === "retry"}
        onConfirm={(reason) => run(reason, stage.count)}
        // Once it is under way, the question is answered; what follows has its own way out.
        onClose={() => !isStarted.current && onClose()}
      >
        {target.kind === "filter" && <TermList filter={target.wanted.filter} />}
      </Confirm>
    );
  }
  const title = stage.kind === "over" ? `${verb.done} ${jobsWord(stage.result.done)}` : `${verb.title} many jobs`;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      footer={
        <Button variant={stage.kind === "over" ? "primary" : "plain"} onClick={onClose}>
          {stage.kind === "running" ? "Leave it running" : "Close"}
        </Button>
      }
    >
      {stage.kind === "counting" && (
        <p role="status" className="flex items-center gap-2 py-2 text-dim">
          <Spinner /> Counting the jobs…
        </p>
      )}
      {stage.kind === "asking" && (
        <p className="py-2">No job that matches can be {verb.passive}: there is nothing to do.</p>
      )}
      {stage.kind === "running" && <BulkProgress action={action} progress={stage.progress} />}
      {stage.kind === "over" && <BulkResult action={action} result={stage.result} />}
      {stage.kind === "failed" && <ProblemView problem={stage.problem} onRetry={() => void count()} />}
    </Dialog>
  );
}

interface EffectProps {
  readonly action: Action;
  readonly target: Target;
  readonly text: string;
  readonly note: string | undefined;
}

function Effect({ action, target, text, note }: EffectProps) {
  const left = target.kind === "these" ? target.left : 0;
  return (
    <>
      {note !== undefined && <strong className="block text-warn">{note}</strong>}
      {action === "cancel"
        ? `Stops ${text} and all their running steps. This cannot be undone.`
        : `Makes a new job for each of ${text}: finished steps are kept, the others run again.`}
      {target.kind === "filter" &&
        " The action applies to all jobs that match the filter, not only to the visible ones."}
      {left > 0 && ` ${jobsWord(left)} of those chosen cannot be ${VERB[action].passive} and stay as they are.`}
    </>
  );
}
