/** Which jobs are listed: one filter, as text that people write, as the address has it, and as the API takes it. */
import type { JobState } from "../../api/schemas";
import type { JobDocument } from "../../live";
import { ACTIVITIES, type Activity, isJobState, isOver, JOB_STATES } from "../../state";

export const KEYS = [
  "status", "activity", "recipe", "label", "event", "failed_step", "since", "until", "caller",
] as const; // biome-ignore format: one list
export type Key = (typeof KEYS)[number];

/** What each key means; the list of suggestions shows it. */
export const MEANING: Readonly<Record<Key, string>> = {
  status: "one or more, with commas",
  activity: "what open jobs are doing",
  recipe: "by name",
  label: "name=value",
  event: "the event that a job waits for",
  failed_step: "the step that failed",
  since: "made since: 15m, 1h, 7d or a time",
  until: "made before: 1h, 7d or a time",
  caller: "whose",
};

/** Other words for a state. */
const ALSO: Readonly<Record<string, JobState>> = { SUCCEEDED: "COMPLETED", DONE: "COMPLETED" };

/** As the address has it: the API's own names, `status` with commas, an age as it was written. */
export interface Filter {
  readonly status: readonly JobState[];
  readonly activity: readonly Activity[];
  readonly recipe: string;
  readonly label: readonly string[];
  readonly event: string;
  readonly failed_step: string;
  readonly since: string;
  readonly until: string;
  readonly caller: string;
}

export const NONE: Filter = {
  status: [],
  activity: [],
  recipe: "",
  label: [],
  event: "",
  failed_step: "",
  since: "",
  until: "",
  caller: "",
};

export interface Issue {
  /** The word that is wrong. */
  readonly word: string;
  readonly message: string;
}

export interface Parsed {
  readonly filter: Filter;
  readonly issues: readonly Issue[];
}

/** One condition, as it is shown and can be taken away. */
export interface Term {
  readonly key: Key;
  readonly value: string;
}

/** Terms one after the other; terms that cannot be read are reported and left out. */
export function filterOf(terms: readonly { readonly key: string; readonly value: string }[]): Parsed {
  const issues: Issue[] = [];
  let filter = NONE;
  for (const { key, value } of terms) {
    const found = takeTerm(filter, key, value);
    if (typeof found === "string") issues.push({ word: key === "" ? value : `${key}:${value}`, message: found });
    else filter = found;
  }
  return { filter, issues };
}

function takeTerm(filter: Filter, key: string, value: string): Filter | string {
  if (!isKey(key)) return key === "" ? wordless(value) : unknownKey(key);
  if (value === "") return `${key}: what? ${MEANING[key]}`;
  if (key === "status") return takeStatus(filter, value);
  if (key === "activity") return takeActivity(filter, value);
  if (key === "label") {
    if (!/.[=:]/.test(value)) return "Write a label as label:name=value";
    return filter.label.includes(value) ? filter : { ...filter, label: [...filter.label, value] };
  }
  if ((key === "since" || key === "until") && instantOf(value, 0) === null) {
    return `${value} is neither an age (15m, 2h, 7d) nor a time (2026-01-31T12:00Z)`;
  }
  if (filter[key] !== "" && filter[key] !== value) return `${key} can be given once`;
  return { ...filter, [key]: value };
}

function takeStatus(filter: Filter, value: string): Filter | string {
  const parts = value.split(",").map((part) => part.trim());
  // `status:waiting` means an activity: no status has that name.
  if (parts.every((part) => isActivity(part.toLowerCase()) && !isJobState(part.toUpperCase()))) {
    return takeActivity(filter, value);
  }
  const status = [...filter.status];
  for (const part of parts) {
    const name = part.toUpperCase();
    if (name === "") continue;
    const known = isJobState(name) ? name : Object.hasOwn(ALSO, name) ? ALSO[name] : undefined;
    if (known === undefined) return noStatus(part);
    if (!status.includes(known)) status.push(known);
  }
  return { ...filter, status };
}

function noStatus(word: string): string {
  if (isActivity(word.toLowerCase())) return `${word} is an activity: write activity:${word.toLowerCase()}`;
  return `There is no status ${word}. There are ${words(JOB_STATES)}`;
}

function takeActivity(filter: Filter, value: string): Filter | string {
  const activity = [...filter.activity];
  for (const part of value.split(",")) {
    const name = part.trim().toLowerCase();
    if (name === "") continue;
    if (!isActivity(name)) return `There is no activity ${part.trim()}. There are ${words(ACTIVITIES)}`;
    if (!activity.includes(name)) activity.push(name);
  }
  return { ...filter, activity };
}

function isActivity(text: string): text is Activity {
  return (ACTIVITIES as readonly string[]).includes(text);
}

function isKey(text: string): text is Key {
  return (KEYS as readonly string[]).includes(text);
}

function words(names: readonly string[]): string {
  return names.map((name) => name.toLowerCase()).join(", ");
}

function unknownKey(key: string): string {
  return `There is no key ${key}. There are ${KEYS.join(", ")}`;
}

function wordless(word: string): string {
  if (isActivity(word.toLowerCase())) return `Write activity:${word.toLowerCase()}`;
  return isJobState(word.toUpperCase())
    ? `Write status:${word.toLowerCase()}`
    : `Add a key to ${word}, such as recipe:${word}`;
}

export function termsOf(filter: Filter): Term[] {
  const terms: Term[] = [];
  for (const key of KEYS) {
    const value = filter[key];
    if (key === "status" || key === "activity") {
      if (value.length > 0) terms.push({ key, value: filter[key].join(",").toLowerCase() });
    } else if (key === "label") for (const one of filter.label) terms.push({ key, value: one });
    else if (typeof value === "string" && value !== "") terms.push({ key, value });
  }
  return terms;
}

export function without(filter: Filter, { key, value }: Term): Filter {
  if (key === "label") return { ...filter, label: filter.label.filter((one) => one !== value) };
  return { ...filter, [key]: NONE[key] };
}

export function isNone(filter: Filter): boolean {
  return termsOf(filter).length === 0;
}

const AGE = /^(\d{1,6})\s*(s|m|h|d|w)$/i;
const UNIT_MS: Readonly<Record<string, number>> = { s: 1e3, m: 6e4, h: 36e5, d: 864e5, w: 6048e5 };

/** The moment that an age or a time stands for; null if it is neither. */
export function instantOf(text: string, nowMs: number): number | null {
  const age = AGE.exec(text);
  if (age !== null) return nowMs - Number(age[1]) * (UNIT_MS[(age[2] ?? "").toLowerCase()] ?? 0);
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const moment = Date.parse(text);
  return Number.isNaN(moment) ? null : moment;
}

/** A filter at a moment: ages are times, and it is said whose. So all pages of a list, and an act on it, mean the same. */
export interface Wanted {
  readonly filter: Filter;
  readonly since: number | null;
  readonly until: number | null;
  /** `*` is every caller. */
  readonly caller: string;
}

export function wantedOf(filter: Filter, who: { caller: string; isAdmin: boolean }, nowMs: number): Wanted {
  return {
    filter,
    since: filter.since === "" ? null : instantOf(filter.since, nowMs),
    until: filter.until === "" ? null : instantOf(filter.until, nowMs),
    caller: filter.caller !== "" ? filter.caller : who.isAdmin ? "*" : who.caller,
  };
}

/** The query of `GET /jobs`. */
export function paramsOf(wanted: Wanted): URLSearchParams {
  const params = new URLSearchParams();
  const { filter } = wanted;
  if (filter.status.length > 0) params.set("status", filter.status.join(","));
  for (const label of filter.label) params.append("label", label);
  if (filter.activity.length > 0) params.set("activity", filter.activity.join(","));
  for (const key of ["recipe", "event", "failed_step"] as const) if (filter[key] !== "") params.set(key, filter[key]);
  if (wanted.since !== null) params.set("since", new Date(wanted.since).toISOString());
  if (wanted.until !== null) params.set("until", new Date(wanted.until).toISOString());
  params.set("caller", wanted.caller);
  return params;
}

/** Whether a job belongs to the list, by the same rules as the server's. */
export function matches(wanted: Wanted, job: JobDocument): boolean {
  const { filter } = wanted;
  if (job.deleted_at !== null) return false;
  if (filter.status.length > 0 && !filter.status.includes(job.status)) return false;
  if (!doesMatch(filter, job)) return false;
  if (filter.recipe !== "" && filter.recipe !== job.recipe) return false;
  if (filter.failed_step !== "" && filter.failed_step !== job.failed_step) return false;
  if (wanted.caller !== "*" && wanted.caller !== job.caller) return false;
  if (!filter.label.every((pair) => hasLabel(job, pair))) return false;
  const made = Date.parse(job.created_at);
  return (wanted.since === null || made >= wanted.since) && (wanted.until === null || made < wanted.until);
}

/** A document that does not say what its job is doing leaves that open: the server is asked again soon. */
function doesMatch(filter: Filter, job: JobDocument): boolean {
  if (filter.activity.length === 0 && filter.event === "") return true;
  if (isOver(job.status)) return false;
  if (job.activity == null) return true;
  if (filter.event !== "" && job.activity !== "waiting") return false;
  return filter.activity.length === 0 || filter.activity.includes(job.activity);
}

function hasLabel(job: JobDocument, pair: string): boolean {
  const at = pair.slice(1).search(/[=:]/) + 1;
  return job.labels[pair.slice(0, at)] === pair.slice(at + 1);
}
