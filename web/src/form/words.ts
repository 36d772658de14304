/** What a field is, in a few words beside its name. */
import { missing } from "../api/schemas";
import type { Json, NamedSpec, NumberSpec, Spec } from "./spec";

export function kindText(spec: Spec): string {
  const kind = bareKind(spec);
  return spec.isNullable ? `${kind} or none` : kind;
}

function bareKind(spec: Spec): string {
  switch (spec.kind) {
    case "text":
      return spec.format === "" ? "text" : spec.format;
    case "number":
      return numberText(spec);
    case "boolean":
      return "yes or no";
    case "choice":
      return "one of";
    case "list":
      return "list";
    case "object":
      return "object";
    case "json":
      return "JSON";
    default:
      return missing(spec);
  }
}

function numberText(spec: NumberSpec): string {
  const kind = spec.isInteger ? "whole number" : "number";
  const least = Number.isFinite(spec.least) ? `${spec.isOpenBelow ? "more than" : "from"} ${spec.least}` : "";
  const most = Number.isFinite(spec.most) ? `${spec.isOpenAbove ? "less than" : "to"} ${spec.most}` : "";
  return [kind, least, most].filter((part) => part !== "").join(" ");
}

const SHOWN_MAX = 60;

/** A value as text in a list of choices. */
export function choiceText(value: Json): string {
  if (value === true) return "yes";
  if (value === false) return "no";
  if (value === null) return "none";
  const text = typeof value === "string" ? value || "empty" : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}

/** An object's values in one line, to be told from the others like it: `topic sea · scenes 4`. */
export function inputsText(inputs: unknown): string {
  if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs))
    return choiceText((inputs ?? null) as Json);
  const parts = Object.entries(inputs).map(([name, value]) => `${name} ${choiceText(value as Json)}`);
  return parts.length === 0 ? "no inputs" : parts.join(" · ");
}

/** The names of fields that need little room and stand beside another one like it: the order stays, no gap is left. */
export function halvesOf(fields: readonly NamedSpec[]): ReadonlySet<string> {
  const isShort = (field: NamedSpec | undefined): boolean =>
    field !== undefined && ["number", "boolean", "choice"].includes(field.spec.kind);
  const halves = new Set<string>();
  for (let i = 0; i < fields.length; i++) {
    const [left, right] = [fields[i], fields[i + 1]];
    if (left === undefined || right === undefined || !isShort(left) || !isShort(right)) continue;
    halves.add(left.name).add(right.name);
    i++;
  }
  return halves;
}
