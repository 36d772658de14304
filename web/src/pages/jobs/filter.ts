/** Which jobs are listed: one filter, as text that people write, as the address has it, and as the API takes it. */
import type { JobDocument } from "../../live";

export const KEYS = ["status", "recipe", "label", "failed_step", "since", "until", "caller", "corpus"] as const;
export type Key = (typeof KEYS)[number];

/** What each key means, for whoever has to choose one. */
export const MEANING: Readonly<Record<Key, string>> = {
  status: "one or more, with commas",
  recipe: "by name",
  label: "name=value",
  failed_step: "where it failed",
  since: "made since: 15m, 1h, 7d or a time",
  until: "made before: 1h, 7d or a time",
  caller: "whose",
  corpus: "value of the label corpus",
};

export const STATUSES = [
  "PENDING", "APPROVAL_REQUIRED", "QUEUED", "DISPATCHING", "PROCESSING", "PREVIEW", "COMPLETED", "FAILED", "DENIED",
  "TIMEOUT", "CANCELLED", "EXPIRED", "OUTPUT_QUARANTINED",
] as const; // biome-ignore format: one list

/** Words that stand for several states, where they are not a state themselves. */
const GROUPS: Readonly<Record<string, readonly string[]>> = {
  RUNNING: ["PROCESSING", "PREVIEW"],
  WAITING: ["APPROVAL_REQUIRED"],
  SUCCEEDED: ["COMPLETED"],
};

/** As the address has it: the API's own names, `status` with commas, an age as it was written. */
export interface Filter {
  readonly status: readonly string[];
  readonly recipe: string;
  readonly label: readonly string[];
  readonly failed_step: string;
  readonly since: string;
  readonly until: string;
  readonly caller: string;
  readonly corpus: string;
}

export const NONE: Filter = {
  status: [],
  recipe: "",
  label: [],
  failed_step: "",
  since: "",
  until: "",
  caller: "",
  corpus: "",
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

/** Terms one after the other; whatever cannot be understood is said and left out. */
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
  if (key === "label") {
    if (!/.[=:]/.test(value)) return "A label is looked for as label:name=value";
    return filter.label.includes(value) ? filter : { ...filter, label: [...filter.label, value] };
  }
  if ((key === "since" || key === "until") && instantOf(value, 0) === null) {
    return `${value} is no age (15m, 2h, 7d) and no time (2026-01-31T12:00Z)`;
  }
  if (filter[key] !== "" && filter[key] !== value) return `${key} can be given once`;
  return { ...filter, [key]: value };
}

function takeStatus(filter: Filter, value: string): Filter | string {
  const status = [...filter.status];
  for (const part of value.split(",")) {
    const name = part.trim().toUpperCase();
    if (name === "") continue;
    const names = isStatus(name) ? [name] : GROUPS[name];
    if (names === undefined) return `There is no status ${part.trim()}. There are ${words(STATUSES)}`;
    for (const one of names) if (!status.includes(one)) status.push(one);
  }
  return { ...filter, status };
}

function isKey(text: string): text is Key {
  return (KEYS as readonly string[]).includes(text);
}

function isStatus(text: string): boolean {
  return (STATUSES as readonly string[]).includes(text);
}

function words(names: readonly string[]): string {
  return names.map((name) => name.toLowerCase()).join(", ");
}

function unknownKey(key: string): string {
  return `There is no key ${key}. There are ${KEYS.join(", ")}`;
}

function wordless(word: string): string {
  return isStatus(word.toUpperCase()) || word.toUpperCase() in GROUPS
    ? `Write status:${word.toLowerCase()}`
    : `Say what ${word} is, such as recipe:${word}`;
}

export function termsOf(filter: Filter): Term[] {
  const terms: Term[] = [];
  for (const key of KEYS) {
    const value = filter[key];
    if (key === "status") {
      if (value.length > 0) terms.push({ key, value: filter.status.join(",").toLowerCase() });
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
  /** `*` is everybody. */
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
  for (const key of ["recipe", "failed_step", "corpus"] as const) if (filter[key] !== "") params.set(key, filter[key]);
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
  if (filter.recipe !== "" && filter.recipe !== job.recipe) return false;
  if (filter.failed_step !== "" && filter.failed_step !== job.failed_step) return false;
  if (filter.corpus !== "" && job.labels.corpus !== filter.corpus) return false;
  if (wanted.caller !== "*" && wanted.caller !== job.caller) return false;
  if (!filter.label.every((pair) => hasLabel(job, pair))) return false;
  const made = Date.parse(job.created_at);
  return (wanted.since === null || made >= wanted.since) && (wanted.until === null || made < wanted.until);
}

function hasLabel(job: JobDocument, pair: string): boolean {
  const at = pair.slice(1).search(/[=:]/) + 1;
  return job.labels[pair.slice(0, at)] === pair.slice(at + 1);
}
