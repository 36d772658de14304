import { Hand } from "lucide-react";
import { type FormEvent, useState } from "react";
import { Button } from "../../ui/Button";
import { Field } from "../../ui/Field";
import { TextArea } from "../../ui/TextArea";
import { useActsHere } from "./acts";
import { parsedJson } from "./parsedInputs";
import { sendEvent } from "./sendEvent";

/** A step waits for a person: say it here. What is sent is what the step gives to those that follow. */
export function AnswerForm({ id, event }: { readonly id: string; readonly event: string }) {
  const [text, setText] = useState("true");
  const [isSending, setSending] = useState(false);
  const { pause } = useActsHere();
  const read = parsedJson(text);
  const send = async (submitted: FormEvent): Promise<void> => {
    submitted.preventDefault();
    if (read.error !== undefined || isSending) return;
    setSending(true);
    await sendEvent(id, event, read.value);
    setSending(false);
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
          Waits for a person to say <code className="font-mono text-[12px]">{event}</code>. No worker is held meanwhile.
        </span>
      </p>
      <Field label="Payload" error={read.error} hint="JSON: the step's output">
        <TextArea
          rows={2}
          spellCheck={false}
          className="font-mono text-[12px]"
          value={text}
          onChange={(changed) => setText(changed.target.value)}
        />
      </Field>
      <Button type="submit" variant="primary" busy={isSending} why={pause.why ?? read.error} className="self-start">
        Send “{event}”
      </Button>
    </form>
  );
}
