/** What one version of a recipe has that another has not. */
import { isObject } from "../../form/spec";
import type { RecipeDocument, RecipeNode } from "./plan";
import { expressionText, retryText, secondsText } from "./words";

export interface Change {
  readonly kind: "added" | "removed" | "changed";
  readonly what: string;
  /** From what to what, one line each. */
  readonly lines: readonly string[];
}

/** How each field of a step is told; the others say themselves. */
const TOLD: Readonly<Record<string, (node: RecipeNode) => string>> = {
  needs: (node) => node.needs.join(", ") || "nothing",
  when: (node) => (node.when === null ? "always" : expressionText(node.when)),
  each: (node) => (node.each === null ? "once" : expressionText(node.each)),
  retry: retryText,
  timeout_s: (node) => secondsText(node.timeout_s),
};
const WORDS: Readonly<Record<string, string>> = {
  each: "for each of",
  when: "only if",
  timeout_s: "timeout",
  retry: "retries",
};
const LINE_MAX = 200;

export function diffOf(before: RecipeDocument, after: RecipeDocument): readonly Change[] {
  return [
    ...named("input", propertiesOf(before), propertiesOf(after), () => []),
    ...named("step", stepsOf(before), stepsOf(after), stepLines),
    ...single("output", before.output, after.output),
    ...single("what happens after a failure", before.on_failure, after.on_failure),
  ];
}

function named<T>(
  noun: string,
  before: ReadonlyMap<string, T>,
  after: ReadonlyMap<string, T>,
  linesOf: (before: T, after: T) => readonly string[],
): Change[] {
  const changes: Change[] = [];
  for (const [name, now] of after) {
    const then = before.get(name);
    if (then === undefined) changes.push({ kind: "added", what: `${noun} ${name}`, lines: [] });
    else if (canonical(then) !== canonical(now)) {
      const lines = linesOf(then, now);
      changes.push({ kind: "changed", what: `${noun} ${name}`, lines: lines.length > 0 ? lines : [fromTo(then, now)] });
    }
  }
  for (const name of before.keys())
    if (!after.has(name)) changes.push({ kind: "removed", what: `${noun} ${name}`, lines: [] });
  return changes;
}

function single(what: string, before: unknown, after: unknown): Change[] {
  return canonical(before) === canonical(after) ? [] : [{ kind: "changed", what, lines: [fromTo(before, after)] }];
}

function stepLines(before: RecipeNode, after: RecipeNode): readonly string[] {
  const names = Object.keys({ ...before, ...after }) as (keyof RecipeNode)[];
  return names
    .filter((name) => canonical(before[name]) !== canonical(after[name]))
    .map((name) => {
      const told = TOLD[name];
      const [then, now] = told ? [told(before), told(after)] : [textOf(before[name]), textOf(after[name])];
      return cut(`${WORDS[name] ?? name}: ${then} → ${now}`);
    });
}

function propertiesOf(recipe: RecipeDocument): ReadonlyMap<string, unknown> {
  const { properties, required } = recipe.inputs_schema;
  const needed = new Set(Array.isArray(required) ? required : []);
  const all = isObject(properties) ? Object.entries(properties) : [];
  // Whether an input is needed stands apart from it in the schema, and belongs to it here.
  return new Map(
    all.map(([name, schema]) => [name, needed.has(name) && isObject(schema) ? { ...schema, required: true } : schema]),
  );
}

function stepsOf(recipe: RecipeDocument): ReadonlyMap<string, RecipeNode> {
  return new Map(recipe.nodes.map((node) => [node.step, node]));
}

function fromTo(before: unknown, after: unknown): string {
  return cut(`${textOf(before)} → ${textOf(after)}`);
}

function textOf(value: unknown): string {
  if (value === null || value === undefined || value === "") return "none";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function cut(line: string): string {
  return line.length > LINE_MAX ? `${line.slice(0, LINE_MAX)}…` : line;
}

/** Equal values give equal texts, in any order of their names. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_name, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
}
