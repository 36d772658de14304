import { Plus, X } from "lucide-react";
import { Button } from "../ui/Button";
import { Field } from "../ui/Field";
import { IconButton } from "../ui/IconButton";
import { Control } from "./Control";
import type { Draft, ListDraft, ObjectDraft } from "./draft";
import { ITEMS_MAX, itemOf } from "./draft";
import { down } from "./pointer";
import type { ListSpec, ObjectSpec, Spec } from "./spec";
import type { Faults } from "./value";
import { halvesOf, kindText } from "./words";

export interface FieldViewProps {
  readonly label: string;
  readonly spec: Spec;
  readonly draft: Draft;
  readonly pointer: string;
  readonly isRequired: boolean;
  readonly faults: Faults;
  readonly onChange: (draft: Draft) => void;
  /** Two of them go beside each other. */
  readonly isHalf?: boolean;
}

/** One field of the form; an object and a list have fields of their own. */
export function FieldView(props: FieldViewProps) {
  const { spec, draft } = props;
  if (spec.kind === "object" && draft.kind === "object") return <ObjectField {...props} spec={spec} draft={draft} />;
  if (spec.kind === "list" && draft.kind === "list") return <ListField {...props} spec={spec} draft={draft} />;
  if (draft.kind !== "text") return null;
  return (
    <Field
      className={props.isHalf ? "" : "col-span-2"}
      label={<Label {...props} />}
      hint={spec.help || undefined}
      error={props.faults.get(props.pointer)}
    >
      <Control
        spec={spec}
        text={draft.text}
        isRequired={props.isRequired}
        onText={(text) => props.onChange({ kind: "text", text })}
      />
    </Field>
  );
}

function Label({ label, spec, isRequired }: Pick<FieldViewProps, "label" | "spec" | "isRequired">) {
  return (
    <span className="flex items-baseline gap-2">
      <span className="min-w-0 truncate font-mono">{label}</span>{" "}
      <span className="truncate font-normal text-[11px] text-dim">
        {kindText(spec)}
        {isRequired && ", required"}
      </span>
    </span>
  );
}

interface ObjectFieldProps extends FieldViewProps {
  readonly spec: ObjectSpec;
  readonly draft: ObjectDraft;
}

function ObjectField(props: ObjectFieldProps) {
  const { spec, draft, pointer, faults, onChange } = props;
  const isRoot = pointer === "";
  const halves = halvesOf(spec.fields);
  const fields = spec.fields.map((field) => {
    const inner = draft.fields.get(field.name);
    if (inner === undefined) return null;
    return (
      <FieldView
        key={field.name}
        isHalf={halves.has(field.name)}
        label={field.title}
        spec={field.spec}
        draft={inner}
        pointer={down(pointer, field.name)}
        isRequired={field.isRequired}
        faults={faults}
        onChange={(next) => onChange({ kind: "object", fields: new Map(draft.fields).set(field.name, next) })}
      />
    );
  });
  if (isRoot) return <div className="grid grid-cols-2 gap-3">{fields}</div>;
  return (
    <Group {...props}>
      <div className="grid grid-cols-2 gap-3">{fields}</div>
    </Group>
  );
}

interface ListFieldProps extends FieldViewProps {
  readonly spec: ListSpec;
  readonly draft: ListDraft;
}

function ListField(props: ListFieldProps) {
  const { spec, draft, label, pointer, faults, onChange } = props;
  const items = draft.items ?? [];
  const put = (next: ListDraft["items"]): void => onChange({ kind: "list", items: next });
  const most = Math.min(spec.countMax, ITEMS_MAX);
  return (
    <Group {...props}>
      {items.length > 0 && (
        <ol className="flex flex-col gap-2">
          {items.map((item, i) => (
            <li key={item.key} className="flex items-start gap-1.5">
              <div className="min-w-0 flex-1">
                <FieldView
                  label={`${label} ${i + 1}`}
                  spec={spec.item}
                  draft={item.draft}
                  pointer={down(pointer, i)}
                  isRequired={!spec.item.isNullable}
                  faults={faults}
                  onChange={(next) =>
                    put(items.map((one) => (one.key === item.key ? { key: item.key, draft: next } : one)))
                  }
                />
              </div>
              <IconButton
                label={`Remove ${label} ${i + 1}`}
                className="mt-5"
                onClick={() => put(items.filter((one) => one.key !== item.key))}
              >
                <X size={13} aria-hidden="true" />
              </IconButton>
            </li>
          ))}
        </ol>
      )}
      <div className="flex flex-wrap items-center gap-2">
        <Button
          icon={<Plus size={13} aria-hidden="true" />}
          why={items.length >= most ? `At most ${most} here` : undefined}
          onClick={() => put([...items, itemOf(spec)])}
        >
          Add
        </Button>
        {draft.items !== null && items.length === 0 && (
          <span className="text-[12px] text-dim">An empty list is sent.</span>
        )}
        {draft.items !== null && !props.isRequired && items.length === 0 && (
          <Button variant="ghost" onClick={() => put(null)}>
            Leave it out
          </Button>
        )}
      </div>
    </Group>
  );
}

/** A box around fields that belong together. */
function Group(props: FieldViewProps & { readonly children: React.ReactNode }) {
  const fault = props.faults.get(props.pointer);
  return (
    <fieldset
      data-fault={fault === undefined ? undefined : true}
      className="col-span-2 flex min-w-0 flex-col gap-2.5 rounded-lg border border-line px-3 pt-1 pb-3"
    >
      <legend className="-ml-1 max-w-full px-1 font-medium text-[12px]">
        <Label {...props} />
      </legend>
      {props.spec.help !== "" && <p className="text-[12px] text-dim">{props.spec.help}</p>}
      {props.children}
      {fault !== undefined && <p className="text-[12px] text-danger">{fault}</p>}
    </fieldset>
  );
}
