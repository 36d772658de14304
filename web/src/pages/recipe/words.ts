/** What decides about a step of a recipe, in words. */

import type { NodeKind } from "../../api/schemas";
import { lasted } from "../../ui/time";
import type { RecipeNode } from "./plan";

export function retryText(node: Pick<RecipeNode, "retry">): string {
  const attempts = numberOf(node.retry.max_attempts);
  if (attempts === null || attempts <= 1) return "once";
  const base = numberOf(node.retry.base_s);
  const cap = numberOf(node.retry.cap_s);
  const waits = base === null ? "" : `, after ${secondsText(base)}${cap === null ? "" : ` up to ${secondsText(cap)}`}`;
  return `${attempts} attempts${waits}`;
}

export function secondsText(seconds: number): string {
  return lasted(seconds * 1_000);
}

/** As the recipe's expressions are written, without what every one of them has: `draw.score > 5`. */
export function expressionText(expression: string): string {
  return expression.replace(/\bsteps\.(\w+)\.outputs\b/g, "$1").replace(/\binputs\.(\w+)/g, "$1");
}

/** A description up to its first empty line, on one line. */
export function firstParagraph(text: string): string {
  return (text.split(/\n\s*\n/, 1)[0] ?? "").replace(/\s+/g, " ").trim();
}

const KINDS: Readonly<Record<NodeKind, string>> = {
  task: "runs",
  event: "waits for event",
  approval: "asks people",
  timer: "sleeps",
  recipe: "starts recipe",
};

/** Name and value of each option that is not the default. */
export function stepFacts(node: RecipeNode): readonly (readonly [string, string])[] {
  const facts: (readonly [string, string] | null)[] = [
    [KINDS[node.kind] ?? node.kind, node.run || node.step],
    node.needs.length > 0 ? ["needs", node.needs.join(", ")] : null,
    node.when === null ? null : ["only if", expressionText(node.when)],
    node.each === null ? null : ["for each of", expressionText(node.each)],
    node.kind === "task" ? ["queue", node.queue] : null,
    node.kind === "task" ? ["timeout", secondsText(node.timeout_s)] : null,
    node.kind === "task" ? ["retries", retryText(node)] : null,
    node.wait_s === null ? null : ["waits at most", secondsText(node.wait_s)],
    node.provider === "" ? null : ["provider", node.provider],
    node.concurrency === null ? null : ["at once", `${node.limit} per ${node.concurrency}`],
    node.takes === 1 ? null : ["takes", `${node.takes} of ${node.limit}`],
    node.places === 1 ? null : ["places", `${node.places}`],
    node.cost === null ? null : ["cost", String(node.cost)],
    node.ttl_s === null ? null : ["kept for", secondsText(node.ttl_s)],
  ];
  return facts.filter((fact) => fact !== null);
}

function numberOf(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}
