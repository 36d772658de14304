import { useQuery } from "@tanstack/react-query";
import { RotateCcw, TriangleAlert } from "lucide-react";
import { type ReactNode, useDeferredValue, useEffect, useMemo, useState } from "react";
import { ask } from "../../api/client";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { ProblemView } from "../../ui/ProblemView";
import { Select } from "../../ui/Select";
import { StateIcon } from "../../ui/StateIcon";
import { TextArea } from "../../ui/TextArea";
import type { JobLive } from "./jobLive";
import { freshKey } from "./key";
import { parsedInputs } from "./parsedInputs";
import type { JobAccepted, RerunPlan } from "./types";
import { useRerunPlan, type Wish } from "./usePlan";

const TYPING_MS = 350;

interface RerunDialogProps {
  readonly id: string;
  readonly live: JobLive;
  /** A step's name; null begins at the start. */
  readonly from: string | null;
  readonly onClose: () => void;
  readonly onMade: (made: JobAccepted, what: string) => void;
}

/** Run again from a step, with other inputs if need be. What would run is shown before it can be pressed. */
export function RerunDialog({ id, live, from, onClose, onMade }: RerunDialogProps) {
  const [step, setStep] = useState(from ?? "");
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState<unknown>();
  const [isBusy, setBusy] = useState(false);
  const key = useMemo(freshKey, []);
  const inputs = useQuery({
    queryKey: ["job", id, "input"],
    queryFn: ({ signal }) => ask<unknown>(`/jobs/${id}/input`, { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });
  const before = inputs.data === undefined ? "" : JSON.stringify(inputs.data, null, 2);
  const read = useMemo(() => parsedInputs(text ?? before), [text, before]);
  const isEdited = text !== null && JSON.stringify(read.value) !== JSON.stringify(inputs.data);
  const isReady = inputs.data !== undefined && read.error === undefined;
  const wish = useMemo<Wish | null>(() => {
    if (!isReady) return null;
    return { ...(step === "" ? {} : { from_step: step }), ...(isEdited ? { inputs: read.value } : {}) };
  }, [step, read, isEdited, isReady]);
  const asked = useSettled(wish);
  const plan = useRerunPlan(id, asked);
  // The button is for the plan that is on the screen, and for no other.
  const isShown = asked === wish && wish !== null && plan.data !== undefined && !plan.isFetching && plan.error === null;

  const run = async (): Promise<void> => {
    if (!isShown || isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const headers = { "Idempotency-Key": key };
      const made = await ask<JobAccepted>(`/jobs/${id}/rerun`, { method: "POST", body: wish, headers });
      onClose();
      onMade(made, "Runs again");
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  const steps = live.structure().nodes.filter((node) => node.parent === undefined);
  const choices = [...steps.map((node) => node.name), ...(step.includes("[") ? [step] : [])];
  const shown = useDeferredValue(plan.data);
  return (
    <Dialog
      title="Run again"
      lead="Makes a new job. This one stays as it is."
      size="medium"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Go back</Button>
          <Button
            variant="primary"
            busy={isBusy}
            why={isShown ? undefined : whyNot(read.error, plan.error)}
            onClick={run}
          >
            {isShown ? `Run ${countText(plan.data.run_again.length)} again` : "Run again"}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-3">
        <Field label="From" hint="This step and all its dependents run again; other finished steps are kept.">
          <Select
            className="w-full"
            value={step}
            onChange={setStep}
            choices={[
              { value: "", label: "The start: every step" },
              ...choices.map((name) => ({ value: name, label: name })),
            ]}
          />
        </Field>
        <Field
          label="Inputs"
          error={text === null ? undefined : read.error}
          hint={isEdited ? "Edited" : "As they were"}
        >
          <TextArea
            rows={Math.min(14, Math.max(4, before.split("\n").length))}
            spellCheck={false}
            className="font-mono text-[12px]"
            value={text ?? before}
            disabled={inputs.data === undefined}
            onChange={(event) => setText(event.target.value)}
          />
        </Field>
        {inputs.error !== null && <ProblemView problem={inputs.error} onRetry={inputs.refetch} />}
        {plan.error !== null && <ProblemView problem={plan.error} onRetry={plan.refetch} />}
        {plan.error === null && shown !== undefined && <Plan plan={shown} isOld={!isShown} />}
        {problem !== undefined && <ProblemView problem={problem} />}
      </div>
    </Dialog>
  );
}

function Plan({ plan, isOld }: { readonly plan: RerunPlan; readonly isOld: boolean }) {
  const stale = new Set(plan.stale);
  const kept = plan.kept.filter((name) => !stale.has(name));
  const children = Object.entries(plan.kept_children ?? {}).filter(([, count]) => count > 0);
  return (
    <section
      aria-label="What will happen"
      aria-busy={isOld}
      className={`flex flex-col gap-2 ${isOld ? "opacity-50" : ""}`}
    >
      <Names
        icon={<RotateCcw size={12} aria-hidden="true" className="text-accent" />}
        title="Will run again"
        names={plan.run_again}
        empty="Nothing."
      />
      <Names
        icon={<StateIcon look="succeeded" size={12} />}
        title="Kept as they are"
        names={kept}
        empty="Nothing is kept."
      />
      {plan.stale.length > 0 && (
        <Names
          icon={<TriangleAlert size={12} aria-hidden="true" className="text-warn" />}
          title="Kept, though made from other inputs"
          names={plan.stale}
        >
          They read an input that you changed, and keep their old outputs. Start from them to run them again.
        </Names>
      )}
      {children.map(([name, count]) => (
        <p key={name} className="text-[12px] text-dim">
          {name}: {count.toLocaleString("en")} finished {count === 1 ? "child is" : "children are"} kept.
        </p>
      ))}
    </section>
  );
}

interface NamesProps {
  readonly icon: ReactNode;
  readonly title: string;
  readonly names: readonly string[];
  readonly empty?: string;
  readonly children?: ReactNode;
}

const NAMES_MAX = 60;

function Names({ icon, title, names, empty, children }: NamesProps) {
  return (
    <div className="rounded-lg border border-line bg-field px-3 py-2">
      <h3 className="flex items-center gap-1.5 font-medium text-[12px]">
        {icon}
        {title}
        <span className="text-dim tabular-nums">{names.length}</span>
      </h3>
      {names.length === 0 ? (
        <p className="mt-1 text-[12px] text-dim">{empty}</p>
      ) : (
        <ul className="mt-1.5 flex flex-wrap gap-1">
          {names.slice(0, NAMES_MAX).map((name) => (
            <li key={name} className="rounded border border-line bg-panel px-1.5 font-mono text-[11px] leading-[18px]">
              {name}
            </li>
          ))}
          {names.length > NAMES_MAX && <li className="text-[11px] text-dim">and {names.length - NAMES_MAX} more</li>}
        </ul>
      )}
      {children !== undefined && <p className="mt-1.5 text-[12px] text-dim">{children}</p>}
    </div>
  );
}

function whyNot(wrong: string | undefined, problem: unknown): string {
  if (wrong !== undefined) return wrong;
  return problem === null ? "First see what will run" : "The server refuses this";
}

function countText(count: number): string {
  return count === 1 ? "1 step" : `${count.toLocaleString("en")} steps`;
}

/** A value once it has stood still for a moment. */
function useSettled<T>(value: T): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), TYPING_MS);
    return () => clearTimeout(timer);
  }, [value]);
  return settled;
}
