import { ChevronRight, RotateCcw, Trash2 } from "lucide-react";
import { Link } from "wouter";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { type Act, type Letters, versionsText } from "./letters";

interface LetterRowProps {
  readonly letters: Letters;
  readonly isOpen: boolean;
  /** Why this person may not act, if so. */
  readonly why: string | undefined;
  readonly onToggle: () => void;
  readonly onAct: (act: Act) => void;
}

/** One kind of failure; opened, the jobs that have it. */
export function LetterRow({ letters, isOpen, why, onToggle, onAct }: LetterRowProps) {
  const panel = `letters-${letters.fingerprint}`;
  return (
    <li className="border-line/70 border-b last:border-b-0">
      <div className="flex flex-wrap items-start gap-x-3 gap-y-2 px-4 py-2.5 hover:bg-hover">
        <button
          type="button"
          aria-expanded={isOpen}
          aria-controls={panel}
          onClick={onToggle}
          className="flex min-w-0 flex-1 basis-64 cursor-pointer items-start gap-2 text-left"
        >
          <ChevronRight
            size={14}
            aria-hidden="true"
            className={`mt-[3px] shrink-0 text-dim ${isOpen ? "rotate-90" : ""}`}
          />
          <span className="flex min-w-9 shrink-0 justify-center rounded-full bg-danger/10 px-2 font-semibold text-[12px] text-danger tabular-nums leading-5">
            {letters.count.toLocaleString("en")}
          </span>
          <span className="flex min-w-0 flex-1 flex-col">
            <span className="break-words font-medium [overflow-wrap:anywhere]">{letters.message || letters.code}</span>
            <span className="text-[12px] text-dim">
              <span className="font-mono">{letters.code}</span> in {letters.recipe}
              {letters.step !== null && ` at ${letters.step}`} · {versionsText(letters.versions)} · first{" "}
              <Ago at={letters.first_at} />, last <Ago at={letters.last_at} />
            </span>
          </span>
        </button>
        <span className="ml-auto flex gap-2 self-center">
          <Button icon={<RotateCcw size={13} aria-hidden="true" />} why={why} onClick={() => onAct("redrive")}>
            Redrive
          </Button>
          <Button
            variant="danger"
            icon={<Trash2 size={13} aria-hidden="true" />}
            why={why}
            onClick={() => onAct("discard")}
          >
            Discard
          </Button>
        </span>
      </div>
      {isOpen && (
        <div id={panel} className="border-line/70 border-t bg-panel2/40 px-4 py-2.5 sm:pl-[88px]">
          <Jobs letters={letters} />
        </div>
      )}
    </li>
  );
}

function Jobs({ letters }: { readonly letters: Letters }) {
  const rest = letters.count - letters.job_ids.length;
  const query = new URLSearchParams({ status: "failed", recipe: letters.recipe });
  if (letters.step !== null) query.set("failed_step", letters.step);
  return (
    <>
      <ul className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,310px),1fr))] gap-x-4">
        {letters.job_ids.map((id) => (
          <li key={id} className="flex items-center gap-1">
            <Link href={`/jobs/${id}`} className="truncate font-mono text-[12px] text-accent hover:underline">
              {id}
            </Link>
            <Copy text={id} label="Copy the job's id" />
          </li>
        ))}
      </ul>
      <p className="mt-1 flex flex-wrap items-center gap-x-2 text-[12px] text-dim">
        {rest > 0 && <span>and {rest.toLocaleString("en")} older.</span>}
        <Link href={`/jobs?${query}`} className="text-accent hover:underline">
          All failed jobs of {letters.recipe}
          {letters.step !== null && ` at ${letters.step}`}
        </Link>
        <span className="flex items-center">
          kind <code className="ml-1 font-mono">{letters.fingerprint}</code>
          <Copy text={letters.fingerprint} label="Copy the fingerprint" />
        </span>
      </p>
    </>
  );
}
