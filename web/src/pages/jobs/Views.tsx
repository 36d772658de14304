import { type FormEvent, useState } from "react";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { Input } from "../../ui/Input";
import { Menu, type MenuItem } from "../../ui/Menu";
import { toast } from "../../ui/toast";
import { useKeys } from "../../use/useKeys";
import { type Filter, isNone } from "./filter";
import { GIVEN, NAME_MAX, nameOf, readViews, type View, withView, writeViews } from "./views";
import { parseText } from "./words";

interface ViewsProps {
  readonly filter: Filter;
  readonly onChange: (filter: Filter) => void;
}

/** Filters under a name: a few common filters, and a person's own. */
export function Views({ filter, onChange }: ViewsProps) {
  const [views, setViews] = useState(() => readViews(localStorage));
  const [isNaming, setNaming] = useState(false);
  const current = nameOf(views, filter);
  const whyNot = isNone(filter) ? "Filter the list first: a view is a filter with a name" : undefined;
  const keep = (next: View[]): void => {
    setViews(next);
    if (!writeViews(localStorage, next))
      toast("This browser stores nothing: the view is lost when the page closes", { kind: "bad" });
  };
  useKeys({ v: () => (whyNot === undefined ? setNaming(true) : toast(whyNot)) });

  const item = (view: View): MenuItem => ({
    label: view.name,
    hint: view.name === current ? "✓" : "",
    onSelect: () => onChange(parseText(view.text).filter),
  });
  const own = views.find((view) => view.name === current);
  return (
    <>
      <Menu
        label={current ?? "Views"}
        items={[
          ...GIVEN.map(item),
          ...(views.length > 0 ? (["-"] as const) : []),
          ...views.map(item),
          "-",
          { label: "Save this view…", hint: "v", why: whyNot, onSelect: () => setNaming(true) },
          ...(own === undefined
            ? []
            : [
                {
                  label: `Forget “${own.name}”`,
                  isDanger: true,
                  onSelect: () => keep(views.filter((view) => view !== own)),
                },
              ]),
        ]}
      />
      {isNaming && (
        <NameView
          views={views}
          onClose={() => setNaming(false)}
          onName={(name) => {
            keep(withView(views, name, filter));
            setNaming(false);
            toast(`Saved as “${name.trim()}”`, { kind: "good" });
          }}
        />
      )}
    </>
  );
}

interface NameViewProps {
  readonly views: readonly View[];
  readonly onName: (name: string) => void;
  readonly onClose: () => void;
}

function NameView({ views, onName, onClose }: NameViewProps) {
  const [name, setName] = useState("");
  const isTaken = views.some((view) => view.name === name.trim());
  const save = (event: FormEvent): void => {
    event.preventDefault();
    if (name.trim() !== "") onName(name);
  };
  return (
    <Dialog
      title="Save this view"
      lead="Saves the current filter under a name in this browser. Share the address to share the filter."
      onClose={onClose}
      size="small"
      footer={
        <>
          <Button onClick={onClose}>Go back</Button>
          <Button
            type="submit"
            form="name-view"
            variant="primary"
            why={name.trim() === "" ? "Give it a name" : undefined}
          >
            {isTaken ? "Replace" : "Save"}
          </Button>
        </>
      }
    >
      <form id="name-view" onSubmit={save}>
        <Field label="Name" hint={isTaken ? "A view with this name exists and will be replaced" : undefined}>
          <Input maxLength={NAME_MAX} value={name} onChange={(event) => setName(event.target.value)} />
        </Field>
      </form>
    </Dialog>
  );
}
