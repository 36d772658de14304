/** Filters that a person gave a name, kept in this browser. */
import { type Filter, isNone } from "./filter";
import { parseText, textOf } from "./words";

export interface View {
  readonly name: string;
  /** The filter as text: it can be read, and a later console can still understand it. */
  readonly text: string;
}

const KEY = "windlass.views";
const VIEWS_MAX = 50;
export const NAME_MAX = 60;

/** The common searches. */
export const GIVEN: readonly View[] = [
  { name: "All jobs", text: "" },
  { name: "Running now", text: "activity:running" },
  { name: "Waiting for a person", text: "activity:waiting" },
  { name: "Failed today", text: "status:failed,denied,timeout,expired,output_quarantined since:24h" },
];

/** The stored text may come from another version, another tab or a curious hand. */
export function readViews(storage: Pick<Storage, "getItem">): View[] {
  try {
    const found: unknown = JSON.parse(storage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter(isView).slice(0, VIEWS_MAX) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is View {
  if (typeof value !== "object" || value === null) return false;
  const { name, text } = value as Partial<Record<string, unknown>>;
  return typeof name === "string" && name !== "" && typeof text === "string" && parseText(text).issues.length === 0;
}

/** With the view added, or in place of the one with its name. */
export function withView(views: readonly View[], name: string, filter: Filter): View[] {
  const view = { name: name.trim().slice(0, NAME_MAX), text: textOf(filter) };
  return [...views.filter((one) => one.name !== view.name), view].slice(-VIEWS_MAX);
}

export function writeViews(storage: Pick<Storage, "setItem">, views: readonly View[]): boolean {
  try {
    storage.setItem(KEY, JSON.stringify(views));
    return true;
  } catch {
    return false;
  }
}

/** The name of the view that shows just this, if there is one. */
export function nameOf(views: readonly View[], filter: Filter): string | undefined {
  if (isNone(filter)) return undefined;
  const text = textOf(filter);
  return [...views, ...GIVEN].find((view) => view.text === text)?.name;
}
