/** From what was typed to what is sent, and what is wrong with it, each fault at its field. */
import { missing } from "../api/schemas";
import { type Draft, isBlank } from "./draft";
import { down } from "./pointer";
import type { ChoiceSpec, Json, NumberSpec, Spec, TextSpec } from "./spec";

/** Faults by JSON pointer into the inputs: `/topic`, `/scenes/2`. */
export type Faults = ReadonlyMap<string, string>;

export interface Read {
  /** `undefined`: nothing is given, and the server takes its default. */
  readonly value: Json | undefined;
  readonly faults: Faults;
}

/** Patterns are left to the server: it matches without backtracking, and a browser would not. */
export function readDraft(spec: Spec, draft: Draft): Read {
  const faults = new Map<string, string>();
  return { value: read(spec, draft, "", true, faults), faults };
}

function read(
  spec: Spec,
  draft: Draft,
  pointer: string,
  isRequired: boolean,
  faults: Map<string, string>,
): Json | undefined {
  const refuse = (message: string): undefined => {
    faults.set(pointer, message);
    return undefined;
  };
  if (spec.kind === "object" && draft.kind === "object") {
    if (!isRequired && isBlank(draft)) return nothing(spec);
    const given: [string, Json][] = [];
    for (const { name, spec: inner, isRequired: isNeeded } of spec.fields) {
      const field = draft.fields.get(name);
      const value = field && read(inner, field, down(pointer, name), isNeeded, faults);
      if (value !== undefined) given.push([name, value]);
    }
    // Not by assignment: a field may be called __proto__.
    return Object.fromEntries(given);
  }
  if (spec.kind === "list" && draft.kind === "list") {
    if (draft.items === null) return isRequired && !spec.isNullable ? refuse("Add an element") : nothing(spec);
    const count = draft.items.length;
    if (count < spec.countMin) refuse(`At least ${plural(spec.countMin, "element")}`);
    if (count > spec.countMax) refuse(`At most ${plural(spec.countMax, "element")}`);
    return draft.items.map((item, i) => read(spec.item, item.draft, down(pointer, i), true, faults) ?? null);
  }
  if (draft.kind !== "text") return refuse("This field cannot be read");
  if (draft.text === "") {
    if (spec.isNullable || !isRequired) return nothing(spec);
    return refuse("Required");
  }
  switch (spec.kind) {
    case "text":
      return readText(spec, draft.text, refuse);
    case "number":
      return readNumber(spec, draft.text, refuse);
    case "choice":
      return readChoice(spec, draft.text, refuse);
    case "boolean":
      return draft.text === "true";
    case "json":
    case "list":
    case "object":
      return readJson(draft.text, refuse);
    default:
      return missing(spec);
  }
}

type Refuse = (message: string) => undefined;

/** Left empty: the default if there is one, which the server puts in; else `null` where that is meant. */
function nothing(spec: Spec): null | undefined {
  return spec.isNullable && spec.fallback !== undefined && spec.fallback !== null ? null : undefined;
}

function readText(spec: TextSpec, text: string, refuse: Refuse): string | undefined {
  // As the schema counts: characters, not UTF-16 units.
  const length = [...text].length;
  if (length < spec.lengthMin) return refuse(`At least ${plural(spec.lengthMin, "character")}`);
  if (length > spec.lengthMax) return refuse(`At most ${plural(spec.lengthMax, "character")}; it has ${length}`);
  return text;
}

function readNumber(spec: NumberSpec, text: string, refuse: Refuse): number | undefined {
  const trimmed = text.trim();
  // `Number` takes more than JSON does: hexadecimal, Infinity, nothing at all.
  if (!/^-?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed)) return refuse("Not a number");
  const value = Number(trimmed);
  if (!Number.isFinite(value)) return refuse("Too large for a number");
  if (spec.isInteger && !Number.isInteger(value)) return refuse("A whole number, without a fraction");
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return refuse("Too large to be sent exactly from a browser");
  if (spec.isOpenBelow ? value <= spec.least : value < spec.least)
    return refuse(spec.isOpenBelow ? `More than ${spec.least}` : `At least ${spec.least}`);
  if (spec.isOpenAbove ? value >= spec.most : value > spec.most)
    return refuse(spec.isOpenAbove ? `Less than ${spec.most}` : `At most ${spec.most}`);
  return value;
}

function readChoice(spec: ChoiceSpec, text: string, refuse: Refuse): Json | undefined {
  const found = spec.options.find((option) => JSON.stringify(option) === text);
  return found === undefined ? refuse("Not one of the choices") : found;
}

export function readJson(text: string, refuse: Refuse): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch (error) {
    return refuse(`Not JSON: ${error instanceof Error ? error.message : "it cannot be read"}`);
  }
}

export function plural(count: number, noun: string): string {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
