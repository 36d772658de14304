import { Hand, TriangleAlert } from "lucide-react";
import { type FormEvent, useId, useState } from "react";
import { Button } from "../../ui/Button";
import { Field } from "../../ui/Field";
import { TextArea } from "../../ui/TextArea";
import { useSession } from "../../use/useSession";
import { useActsHere } from "./acts";
import { type Awaited, draftOf, warningsOf } from "./answer";
import { parsedJson } from "./parsedInputs";
import { sendEvent } from "./sendEvent";

interface AnswerFormProps {
  readonly id: string;
  readonly awaited: Awaited;
  readonly onSent?: () => void;
}

/** A step waits for a person: say it here. The sent value is the step's output for later steps. */
export function AnswerForm({ id, awaited, onSent }: AnswerFormProps) {
  const { caller } = useSession();
  const [text, setText] = useState(() => draftOf(awaited, caller));
  const [isSending, setSending] = useState(false);
  const { pause } = useActsHere();
  const warnId = useId();
  const read = parsedJson(text);
  const warnings = read.error === undefined ? warningsOf(awaited, read.value) : [];
  const send = async (submitted: FormEvent): Promise<void> => {
    submitted.preventDefault();
    if (read.error !== undefined || isSending) return;
    setSending(true);
    const isSent = await sendEvent(id, awaited.event, read.value);
    setSending(false);
    if (isSent) onSent?.();
  };
  return (
    <form
      onSubmit={send}
      className="flex flex-col gap-2.5 rounded-lg border border-dashed p-3"
      style={{ borderColor: "color-mix(in oklab, var(--st-waiting) 55%, transparent)" }}
    >
      <p className="flex items-start gap-2">
        <Hand size={15} aria-hidden="true" className="mt-0.5 shrink-0" style={{ color: "var(--st-waiting)" }} />
        <span>
          Waits for a person to say <Code>{awaited.event}</Code>. No worker is held meanwhile.
        </span>
      </p>
      <Reads awaited={awaited} />
      <Field label="Payload" error={read.error} hint="JSON, the step's output. Look at it before you send it.">
        <TextArea
          rows={Math.min(12, Math.max(2, text.split("\n").length))}
          spellCheck={false}
          className="font-mono text-[12px]"
          value={text}
          onChange={(changed) => setText(changed.target.value)}
        />
      </Field>
      {warnings.length > 0 && (
        <ul id={warnId} aria-label="Errors" className="flex flex-col gap-1 text-[12px] text-warn">
          {warnings.map((warning) => (
            <li key={warning} className="flex items-start gap-1.5">
              <TriangleAlert size={13} aria-hidden="true" className="mt-0.5 shrink-0" />
              {warning}.
            </li>
          ))}
        </ul>
      )}
      <Button
        type="submit"
        variant={warnings.length > 0 ? "plain" : "primary"}
        busy={isSending}
        why={pause.why ?? read.error}
        aria-describedby={warnings.length > 0 ? warnId : undefined}
        className="self-start"
      >
        Send “{awaited.event}”{warnings.length > 0 && " anyway"}
      </Button>
    </form>
  );
}

/** What the recipe does with it, as far as its expressions tell. */
function Reads({ awaited }: { readonly awaited: Awaited }) {
  const { keys, given_to: givenTo } = awaited;
  const match = Object.entries(awaited.match);
  const steps = givenTo.filter((name) => name !== "output");
  if (match.length + keys.length + steps.length === 0) return null;
  return (
    <ul className="flex flex-col gap-0.5 text-[12px] text-dim">
      {match.map(([key, value]) => (
        <li key={key}>
          It must have <Code>{key}</Code> = <Code>{JSON.stringify(value)}</Code>
        </li>
      ))}
      {keys.length > 0 && (
        <li>
          The recipe reads <Codes names={keys} />
        </li>
      )}
      {steps.length > 0 && (
        <li>
          The whole body goes to <Codes names={steps} />
        </li>
      )}
    </ul>
  );
}

function Codes({ names }: { readonly names: readonly string[] }) {
  return names.map((name, at) => (
    <span key={name}>
      {at > 0 && ", "}
      <Code>{name}</Code>
    </span>
  ));
}

function Code({ children }: { readonly children: string }) {
  return <code className="break-words font-mono text-[12px] text-fg">{children}</code>;
}
