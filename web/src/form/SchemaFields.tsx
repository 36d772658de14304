import { Field } from "../ui/Field";
import { TextArea } from "../ui/TextArea";
import { FieldView } from "./FieldView";
import type { SchemaForm } from "./useSchemaForm";

const ROWS_MIN = 6;
const ROWS_MAX = 24;

/** The fields of a schema, or one text with everything. */
export function SchemaFields({ form }: { readonly form: SchemaForm }) {
  const { spec } = form;
  if (form.isText || spec.kind !== "object")
    return (
      <Field
        label="Inputs as JSON"
        error={form.textFault}
        hint={spec.kind === "json" ? `No fields, as ${spec.why}.` : undefined}
      >
        <TextArea
          rows={Math.min(ROWS_MAX, Math.max(ROWS_MIN, form.text.split("\n").length))}
          spellCheck={false}
          value={form.text}
          onChange={(event) => form.changeText(event.target.value)}
          className="resize-y font-mono text-[12px] leading-[1.55]"
        />
      </Field>
    );
  if (spec.fields.length === 0) return <p className="text-dim">This recipe takes no inputs.</p>;
  return (
    <FieldView
      label="Inputs"
      spec={spec}
      draft={form.draft}
      pointer=""
      isRequired
      faults={form.faults}
      onChange={form.change}
    />
  );
}
