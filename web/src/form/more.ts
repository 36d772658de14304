/** What a submission may say besides its inputs, as it is typed and as it is sent. */
import type { Submission } from "./submitText";
import type { Faults } from "./value";

export interface MoreTexts {
  readonly key: string;
  /** One `name=value` a line. */
  readonly labels: string;
  readonly priority: string;
  readonly deadline: string;
}

export const NO_MORE: MoreTexts = { key: "", labels: "", priority: "", deadline: "" };

type More = Pick<Submission, "key" | "labels" | "priority" | "deadline">;

const PRIORITY_MOST = 100;
const KEY_MAX = 255;
const LABELS_MAX = 64;

export function readMore(texts: MoreTexts): { readonly value: More; readonly faults: Faults } {
  const faults = new Map<string, string>();
  const value: { -readonly [K in keyof More]: More[K] } = {};
  const key = texts.key.trim();
  if (key.length > KEY_MAX) faults.set("/key", `At most ${KEY_MAX} characters`);
  else if (key !== "") value.key = key;
  const priority = Number(texts.priority);
  if (!Number.isInteger(priority) || Math.abs(priority) > PRIORITY_MOST)
    faults.set("/priority", `A whole number from −${PRIORITY_MOST} to ${PRIORITY_MOST}`);
  else if (priority !== 0) value.priority = priority;
  if (texts.deadline.trim() !== "") value.deadline = texts.deadline.trim();
  const labels = readLabels(texts.labels);
  if (typeof labels === "string") faults.set("/labels", labels);
  else if (Object.keys(labels).length > 0) value.labels = labels;
  return { value, faults };
}

function readLabels(text: string): Record<string, string> | string {
  const pairs: [string, string][] = [];
  for (const line of text.split("\n")) {
    if (line.trim() === "") continue;
    const mark = line.indexOf("=");
    const name = line.slice(0, mark).trim();
    if (mark < 0 || name === "") return `“${line.trim().slice(0, 40)}” is not name=value`;
    pairs.push([name, line.slice(mark + 1).trim()]);
  }
  return pairs.length > LABELS_MAX ? `At most ${LABELS_MAX} labels` : Object.fromEntries(pairs);
}

/** Which of these fields a fault of the server is about. */
export function moreField(pointer: string): "/key" | "/priority" | "/labels" | "/deadline" | null {
  if (/^\/labels(\/|$)/.test(pointer)) return "/labels";
  if (pointer === "/priority" || pointer === "/deadline") return pointer;
  return /idempotency/i.test(pointer) ? "/key" : null;
}
