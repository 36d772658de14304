/** What to send to a step that waits for an event: a first draft, and what is wrong with what was made of it. */
import type { components } from "../../api/types.gen";

export type Awaited = components["schemas"]["AwaitedDocument"];

/** The body as the recipe can use it: what must match, what is read, and who says so. */
export function draftOf(awaited: Awaited, caller: string): string {
  const { match, keys, given_to: givenTo, is_condition: isCondition } = awaited;
  if (isCondition && keys.length === 0 && Object.keys(match).length === 0) return "true";
  const body: Record<string, unknown> = { ...match };
  // A step that is given the whole body may need the name of the sender.
  const wanted = keys.length === 0 || givenTo.length > 0 ? [...keys, "by"] : keys;
  for (const key of wanted) if (!(key in body)) body[key] = key === "by" ? caller : "";
  return JSON.stringify(body, null, 2);
}

/** What would go wrong with this body, in sentences. */
export function warningsOf(awaited: Awaited, body: unknown): string[] {
  const { match, keys, is_condition: isCondition } = awaited;
  const has = isObject(body) ? body : {};
  const warnings: string[] = [];
  for (const [key, value] of Object.entries(match)) {
    if (!isSame(has[key], value)) warnings.push(`The step only takes “${key}” = ${JSON.stringify(value)}`);
  }
  const read = keys.filter((key) => !(key in match));
  const missing = read.filter((key) => !(key in has));
  if (missing.length > 0)
    warnings.push(
      `The recipe reads ${listed(missing)}, and this does not have ${missing.length === 1 ? "it" : "them"}`,
    );
  const empty = read.filter((key) => has[key] === "");
  if (empty.length > 0) warnings.push(`${listed(empty)} ${empty.length === 1 ? "is" : "are"} still empty`);
  if (isCondition && typeof body !== "boolean") warnings.push("A step runs only if this is true or false by itself");
  return warnings;
}

function listed(keys: readonly string[]): string {
  return keys.map((key) => `“${key}”`).join(", ");
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Equal as JSON, in any order of keys. */
function isSame(one: unknown, other: unknown): boolean {
  if (Array.isArray(one) && Array.isArray(other)) {
    return one.length === other.length && one.every((value, at) => isSame(value, other[at]));
  }
  if (isObject(one) && isObject(other)) {
    const keys = Object.keys(one);
    return (
      keys.length === Object.keys(other).length && keys.every((key) => key in other && isSame(one[key], other[key]))
    );
  }
  return one === other;
}
