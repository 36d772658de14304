import { useMemo, useState } from "react";
import { canHold, type Draft, draftAt, draftOf } from "./draft";
import { type ServerFault, sortFaults } from "./faults";
import { type Json, type Spec, specOf } from "./spec";
import { type Faults, readDraft } from "./value";

const NONE: Faults = new Map();

export interface SchemaForm {
  readonly spec: Spec;
  readonly draft: Draft;
  /** Everything as one text, for what the fields cannot say. */
  readonly text: string;
  readonly isText: boolean;
  readonly faults: Faults;
  /** What is wrong with the text, or why there are no fields for it. */
  readonly textFault: string | undefined;
  readonly change: (draft: Draft) => void;
  readonly changeText: (text: string) => void;
  readonly showText: (isText: boolean) => void;
  /** Start from a value, as fields if they can hold it. */
  readonly start: (value: Json) => void;
  /** The inputs as they stand, faults or not; `undefined` when the text cannot be read. */
  readonly peek: () => { readonly [name: string]: Json } | undefined;
  /** The inputs if nothing is wrong with them; else the faults are shown. */
  readonly check: () => { readonly [name: string]: Json } | undefined;
  /** Show what the server says, and give back what no field is for. */
  readonly refuse: (told: readonly ServerFault[]) => readonly ServerFault[];
}

interface State {
  readonly draft: Draft;
  readonly text: string;
  readonly isText: boolean;
  readonly faults: Faults;
  readonly textFault: string | undefined;
}

export function useSchemaForm(schema: unknown): SchemaForm {
  const spec = useMemo(() => specOf(schema), [schema]);
  const [state, setState] = useState<State>(() => first(spec, undefined));
  const change = (part: Partial<State>): void => setState((now) => ({ ...now, ...part }));

  const peek = (): { readonly [name: string]: Json } | undefined => {
    if (state.isText) return objectIn(state.text);
    const { value } = readDraft(spec, state.draft);
    return isInputs(value) ? value : undefined;
  };
  return {
    spec,
    ...state,
    change: (draft) => change({ draft, faults: untouched(state.faults, state.draft, draft) }),
    changeText: (text) => change({ text, textFault: undefined }),
    showText: (isText) => {
      const inputs = peek();
      if (isText) change({ isText, text: JSON.stringify(inputs ?? {}, null, 2), textFault: undefined });
      else if (inputs === undefined) change({ textFault: "The text is not a JSON object" });
      else if (!canHold(spec, inputs))
        change({ textFault: "The fields cannot show this: a name or a type is not in the schema" });
      else change({ isText, draft: draftOf(spec, inputs), faults: NONE, textFault: undefined });
    },
    start: (value) => setState(first(spec, value)),
    peek,
    check: () => {
      if (state.isText) {
        const inputs = objectIn(state.text);
        change({ textFault: inputs === undefined ? "Not a JSON object" : undefined });
        return inputs;
      }
      const { value, faults } = readDraft(spec, state.draft);
      change({ faults });
      return faults.size === 0 && isInputs(value) ? value : undefined;
    },
    refuse: (told) => {
      if (state.isText) {
        const ours = told.filter((one) => one.pointer.startsWith("/inputs"));
        if (ours.length > 0)
          change({ textFault: ours.map((one) => `${one.pointer.slice(7) || "/"}: ${one.message}`).join("; ") });
        return told.filter((one) => !ours.includes(one));
      }
      const { faults, others } = sortFaults(spec, state.draft, told);
      change({ faults });
      return others;
    },
  };
}

function first(spec: Spec, value: Json | undefined): State {
  const isText = spec.kind !== "object" || !canHold(spec, value);
  return {
    draft: draftOf(spec, value),
    text: JSON.stringify(value ?? {}, null, 2),
    isText,
    faults: NONE,
    textFault: undefined,
  };
}

/** A fault is about what was typed before: it goes with the first change of its field, and the others stay. */
function untouched(faults: Faults, before: Draft, after: Draft): Faults {
  const kept = [...faults].filter(([pointer]) => draftAt(before, pointer) === draftAt(after, pointer));
  return kept.length === faults.size ? faults : new Map(kept);
}

function objectIn(text: string): { readonly [name: string]: Json } | undefined {
  try {
    const value = JSON.parse(text) as Json;
    return isInputs(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function isInputs(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
