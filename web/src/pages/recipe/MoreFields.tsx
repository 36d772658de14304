import type { MoreTexts } from "../../form/more";
import type { Faults } from "../../form/value";
import { Field } from "../../ui/Field";
import { Input } from "../../ui/Input";
import { TextArea } from "../../ui/TextArea";

interface MoreFieldsProps {
  readonly texts: MoreTexts;
  readonly faults: Faults;
  readonly onChange: (texts: MoreTexts) => void;
}

/** What most submissions do without. */
export function MoreFields({ texts, faults, onChange }: MoreFieldsProps) {
  const put = (part: Partial<MoreTexts>): void => onChange({ ...texts, ...part });
  return (
    <div className="grid grid-cols-2 gap-3 pt-3">
      <Field
        className="col-span-2"
        label="Idempotency key"
        hint="Requests with the same key make one job."
        error={faults.get("/key")}
      >
        <Input value={texts.key} autoComplete="off" onChange={(event) => put({ key: event.target.value })} />
      </Field>
      <Field label="Priority" hint="−100 to 100, higher first" error={faults.get("/priority")}>
        <Input
          inputMode="numeric"
          placeholder="0"
          value={texts.priority}
          onChange={(event) => put({ priority: event.target.value })}
        />
      </Field>
      <Field label="Deadline" hint="90s, 10m, 2h from now" error={faults.get("/deadline")}>
        <Input
          placeholder="none"
          autoComplete="off"
          value={texts.deadline}
          onChange={(event) => put({ deadline: event.target.value })}
        />
      </Field>
      <Field className="col-span-2" label="Labels" hint="One name=value a line" error={faults.get("/labels")}>
        <TextArea
          rows={2}
          spellCheck={false}
          placeholder="team=docs"
          value={texts.labels}
          onChange={(event) => put({ labels: event.target.value })}
          className="font-mono text-[12px]"
        />
      </Field>
    </div>
  );
}
