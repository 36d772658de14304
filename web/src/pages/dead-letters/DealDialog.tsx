import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useLocation } from "wouter";
import { Problem } from "../../api/client";
import { Confirm } from "../../ui/Confirm";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { toast } from "../../ui/toast";
import { type Act, deal, doneText, LETTERS_KEY, type Letters, type Start } from "./letters";

interface DealDialogProps {
  readonly letters: Letters;
  readonly act: Act;
  readonly onClose: () => void;
}

const STARTS: readonly { readonly id: Start; readonly title: string; readonly line: string }[] = [
  { id: "failed", title: "From the step that failed", line: "What succeeded is kept." },
  { id: "first", title: "From the first step", line: "Everything runs again." },
];

/** Redrive or discard a kind: counted first, and done only if the count is still the same. */
export function DealDialog({ letters, act, onClose }: DealDialogProps) {
  const [start, setStart] = useState<Start>("failed");
  const [, go] = useLocation();
  const queries = useQueryClient();
  const wish = act === "redrive" ? { start } : {};
  const count = useQuery({
    queryKey: [...LETTERS_KEY, letters.fingerprint, act, start],
    queryFn: () => deal(letters.fingerprint, act, { ...wish, dry_run: true }),
    staleTime: 0,
    gcTime: 0,
  });
  const matched = count.data?.matched;
  const jobs = matched === undefined ? "jobs" : `${matched.toLocaleString("en")} ${matched === 1 ? "job" : "jobs"}`;

  const confirm = async (reason: string): Promise<void> => {
    if (matched === undefined) throw new Problem({ title: "They are not counted yet", status: 0, code: "not_counted" });
    const done = await deal(letters.fingerprint, act, { ...wish, dry_run: false, expect: matched, reason }).catch(
      (error: unknown) => {
        // Most likely the count has changed: the next press is to go by the new one.
        void queries.invalidateQueries({ queryKey: LETTERS_KEY });
        throw error;
      },
    );
    void queries.invalidateQueries({ queryKey: LETTERS_KEY, exact: true });
    // The badge beside the page's name counts them too.
    void queries.invalidateQueries({ queryKey: ["overview"] });
    const first = done.done[0]?.new_job_id;
    toast(doneText(act, done), {
      kind: done.refused.length === 0 ? "good" : "bad",
      ...(first ? { action: { label: "Open", onPress: () => go(`/jobs/${first}`) } } : {}),
    });
  };

  return (
    <Confirm
      title={act === "redrive" ? "Run them again" : "Discard them"}
      effect={
        act === "redrive"
          ? `Makes a new job for each of ${jobs} of ${letters.recipe}. The failed ones stay as they are.`
          : `Takes ${jobs} of ${letters.recipe} off this list. They stay failed, and can still be opened and run again.`
      }
      count={matched}
      needsReason
      isHarmless={act === "redrive"}
      action={act === "redrive" ? `Run ${jobs} again` : `Discard ${jobs}`}
      onConfirm={confirm}
      onClose={onClose}
    >
      {act === "redrive" && (
        <fieldset className="flex flex-col gap-1.5">
          <legend className="mb-1 font-medium text-[12px]">Where they start</legend>
          {STARTS.map((one) => (
            <label key={one.id} className="flex cursor-pointer items-baseline gap-2">
              <input
                type="radio"
                name="start"
                className="translate-y-px accent-accent"
                checked={start === one.id}
                onChange={() => setStart(one.id)}
              />
              <span className="font-medium">{one.title}</span>
              <span className="text-dim">{one.line}</span>
            </label>
          ))}
        </fieldset>
      )}
      {count.error !== null && <ProblemView problem={count.error} onRetry={() => void count.refetch()} />}
      {count.isPending && <Skeleton rows={1} label="Counting" />}
      {count.data?.is_more === true && (
        <p className="text-dim">One request handles a part of them. Press again for the rest.</p>
      )}
    </Confirm>
  );
}
