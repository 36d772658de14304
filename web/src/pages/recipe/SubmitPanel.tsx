import { Braces, Play, TextCursorInput } from "lucide-react";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Problem, problemOf } from "../../api/client";
import { moreField, NO_MORE, readMore } from "../../form/more";
import { SchemaFields } from "../../form/SchemaFields";
import type { Submission } from "../../form/submitText";
import { useSchemaForm } from "../../form/useSchemaForm";
import type { Faults } from "../../form/value";
import { Button } from "../../ui/Button";
import { copyText } from "../../ui/Copy";
import { Menu } from "../../ui/Menu";
import { ProblemView } from "../../ui/ProblemView";
import { toast } from "../../ui/toast";
import { useSession } from "../../use/useSession";
import { MoreFields } from "./MoreFields";
import type { RecipeDocument } from "./plan";
import { RecentMenu } from "./RecentMenu";
import { useSubmit } from "./useSubmit";

interface SubmitPanelProps {
  readonly recipe: RecipeDocument;
  /** 0: the newest there is when the job is made. */
  readonly version: number;
}

/** The form that a recipe's schema makes. Give it a `key` of the schema: another one starts anew. */
export function SubmitPanel({ recipe, version }: SubmitPanelProps) {
  const form = useSchemaForm(recipe.inputs_schema);
  const [more, setMore] = useState(NO_MORE);
  const [moreFaults, setMoreFaults] = useState<Faults>(new Map());
  const [problem, setProblem] = useState<Problem>();
  const [isMoreOpen, setMoreOpen] = useState(false);
  const submit = useSubmit();
  const session = useSession();
  const [, go] = useLocation();
  const box = useRef<HTMLFormElement>(null);
  const refusals = useFocusOnFault(box);

  const wantedOf = (inputs: Submission["inputs"]): Submission => ({
    recipe: recipe.name,
    inputs,
    ...(version > 0 ? { version } : {}),
    ...readMore(more).value,
  });
  const send = (event: FormEvent): void => {
    event.preventDefault();
    if (submit.isPending || !session.can("jobs:write")) return;
    const inputs = form.check();
    const { faults } = readMore(more);
    setMoreFaults(faults);
    if (faults.size > 0) setMoreOpen(true);
    setProblem(undefined);
    if (inputs === undefined || faults.size > 0) {
      refusals.next();
      return;
    }
    submit.mutate(wantedOf(inputs), {
      onSuccess: (job) => {
        if (!job.is_new) toast("A job with this key exists already.");
        go(`/jobs/${job.job_id}`);
      },
      onError: (error) => {
        refuse(problemOf(error));
        refusals.next();
      },
    });
  };
  const refuse = (told: Problem): void => {
    const others = form.refuse(told.body.errors ?? []);
    const mine = others.flatMap((one) => {
      const field = moreField(one.pointer);
      return field === null ? [] : [[field, one.message] as const];
    });
    setMoreFaults(new Map(mine));
    if (mine.length > 0) setMoreOpen(true);
    const errors = others.filter((one) => moreField(one.pointer) === null);
    const isPlaced = told.body.errors !== undefined && told.body.errors.length > 0 && errors.length === 0;
    // What the server advises is about its answer, and the fields show that already.
    const { hint: _hint, ...body } = told.body;
    setProblem(isPlaced ? new Problem({ ...body, detail: "See the fields that are marked.", errors }) : told);
  };
  const copy = async (words: "asCli" | "asCurl" | "asPython"): Promise<void> => {
    const inputs = form.peek();
    if (inputs === undefined) return toast("The inputs cannot be read yet.", { kind: "bad" });
    const write = (await import("../../form/submitText"))[words];
    if (await copyText(write(wantedOf(inputs), location.origin))) toast("Copied", { kind: "good" });
  };

  return (
    <form ref={box} id="submit" onSubmit={send} noValidate aria-label="Submit a job" className="flex min-h-0 flex-col">
      <header className="flex min-h-11 flex-wrap items-center gap-2 border-line border-b px-4 py-1.5">
        <h2 className="mr-auto font-semibold">Submit a job</h2>
        <RecentMenu name={recipe.name} onStart={form.start} />
        {form.spec.kind === "object" && (
          <Button
            variant="ghost"
            icon={
              form.isText ? <TextCursorInput size={13} aria-hidden="true" /> : <Braces size={13} aria-hidden="true" />
            }
            onClick={() => form.showText(!form.isText)}
          >
            {form.isText ? "Fields" : "JSON"}
          </Button>
        )}
      </header>
      <div className="min-h-0 overflow-y-auto px-4 py-3">
        <SchemaFields form={form} />
        <details
          className="mt-4 border-line border-t pt-2"
          open={isMoreOpen}
          onToggle={(event) => setMoreOpen(event.currentTarget.open)}
        >
          <summary className="cursor-pointer rounded py-1 text-dim hover:text-fg">
            More: key, priority, deadline, labels
          </summary>
          <MoreFields
            texts={more}
            faults={moreFaults}
            onChange={(next) => {
              setMore(next);
              setMoreFaults(new Map());
            }}
          />
        </details>
      </div>
      {problem !== undefined && (
        <div className="px-4 pb-3">
          <ProblemView problem={problem} />
        </div>
      )}
      <footer className="flex flex-wrap items-center gap-2 border-line border-t px-4 py-2.5">
        <Button
          type="submit"
          variant="primary"
          busy={submit.isPending}
          why={session.can("jobs:write") ? undefined : "Your key may read jobs but not submit them (scope jobs:write)"}
          icon={<Play size={13} aria-hidden="true" />}
        >
          Submit
        </Button>
        <Menu
          label="Copy as"
          items={[
            { label: "Command line", onSelect: () => void copy("asCli") },
            { label: "cURL", onSelect: () => void copy("asCurl") },
            { label: "Python", onSelect: () => void copy("asPython") },
          ]}
        />
      </footer>
    </form>
  );
}

/** After a refusal the first field that is marked gets the focus, once it is marked. */
function useFocusOnFault(box: React.RefObject<HTMLElement | null>): { readonly next: () => void } {
  const [count, setCount] = useState(0);
  useEffect(() => {
    if (count > 0) box.current?.querySelector<HTMLElement>("[aria-invalid=true], [data-fault] button")?.focus();
  }, [box, count]);
  return { next: () => setCount((now) => now + 1) };
}
