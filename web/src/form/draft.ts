/** What was typed so far, field by field: text until it is sent, because half a number is not a number. */
import { missing } from "../api/schemas";
import { partsOf } from "./pointer";
import { isObject, type Json, type ListSpec, type NamedSpec, type Spec } from "./spec";

export interface TextDraft {
  readonly kind: "text";
  readonly text: string;
}
export interface ObjectDraft {
  readonly kind: "object";
  readonly fields: ReadonlyMap<string, Draft>;
}
export interface ListDraft {
  readonly kind: "list";
  /** `null`: no list is given, which is not the same as an empty one. */
  readonly items: readonly ListItem[] | null;
}
export interface ListItem {
  /** Stays with the element when others are taken out, so that the page keeps its focus. */
  readonly key: number;
  readonly draft: Draft;
}
export type Draft = TextDraft | ObjectDraft | ListDraft;

/** How many elements are drawn as fields; a list that is longer starts as JSON. */
export const ITEMS_MAX = 200;

let lastKey = 0;

/** A draft that stands for the value; with `undefined`, for what the schema gives by itself. */
export function draftOf(spec: Spec, value: Json | undefined = spec.fallback): Draft {
  switch (spec.kind) {
    case "object": {
      const field = ({ name, spec: inner }: NamedSpec): Draft => {
        if (!isObject(value)) return draftOf(inner);
        // What was left out of a value stays out of it: a default put in here would be sent.
        return Object.hasOwn(value, name) ? draftOf(inner, value[name] as Json) : blankOf(inner);
      };
      return { kind: "object", fields: new Map(spec.fields.map((one) => [one.name, field(one)])) };
    }
    case "list":
      if (Array.isArray(value)) return { kind: "list", items: value.map((one) => itemOf(spec, one as Json)) };
      return { kind: "list", items: null };
    case "json":
      return { kind: "text", text: value === undefined ? "" : JSON.stringify(value, null, 2) };
    case "text":
      return { kind: "text", text: typeof value === "string" ? value : "" };
    case "number":
    case "boolean":
    case "choice":
      return { kind: "text", text: value === undefined || value === null ? "" : JSON.stringify(value) };
    default:
      return missing(spec);
  }
}

function blankOf(spec: Spec): Draft {
  if (spec.kind === "object")
    return { kind: "object", fields: new Map(spec.fields.map((one) => [one.name, blankOf(one.spec)])) };
  return spec.kind === "list" ? { kind: "list", items: null } : { kind: "text", text: "" };
}

export function itemOf(spec: ListSpec, value?: Json): ListItem {
  return { key: ++lastKey, draft: draftOf(spec.item, value) };
}

/**
 * Whether a draft of this spec can hold the value without losing anything: a value that does not fit the schema, or has
 * names that the form does not know, is shown as JSON instead.
 */
export function canHold(spec: Spec, value: Json | undefined): boolean {
  if (value === undefined) return true;
  if (value === null) return spec.isNullable || spec.kind === "json";
  switch (spec.kind) {
    case "json":
      return true;
    case "text":
      // An empty field is nothing at all, so an empty text can only be what nothing gives.
      return typeof value === "string" && (value !== "" || spec.fallback === "");
    case "number":
      return typeof value === "number";
    case "boolean":
      return typeof value === "boolean";
    case "choice":
      return spec.options.includes(value);
    case "list":
      return Array.isArray(value) && value.length <= ITEMS_MAX && value.every((one) => canHold(spec.item, one as Json));
    case "object": {
      if (!isObject(value)) return false;
      const known = new Map(spec.fields.map((f) => [f.name, f.spec]));
      return Object.entries(value).every(([name, one]) => {
        const field = known.get(name);
        return field !== undefined && canHold(field, one as Json);
      });
    }
    default:
      return missing(spec);
  }
}

/** Whether nothing was typed anywhere in it. */
export function isBlank(draft: Draft): boolean {
  if (draft.kind === "text") return draft.text === "";
  if (draft.kind === "list") return draft.items === null;
  return [...draft.fields.values()].every(isBlank);
}

/** The part of a draft that a pointer names. What was not touched is the same object as before. */
export function draftAt(draft: Draft, pointer: string): Draft | undefined {
  let at: Draft | undefined = draft;
  for (const part of partsOf(pointer)) {
    if (at?.kind === "object") at = at.fields.get(part);
    else if (at?.kind === "list") at = at.items?.[Number(part)]?.draft;
    else return undefined;
  }
  return at;
}
