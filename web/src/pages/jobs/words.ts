/** The filter as a line of text: `status:failed recipe:index label:team=a since:1h`. Quotes hold spaces together. */
import { ACTIVITIES, JOB_STATES } from "../../state";
import { type Filter, filterOf, KEYS, MEANING, type Parsed, termsOf } from "./filter";

export interface Word {
  readonly key: string;
  readonly value: string;
  /** Where it stands in the text. */
  readonly from: number;
  readonly to: number;
}

export function wordsOf(text: string): Word[] {
  const found: Word[] = [];
  for (const match of text.matchAll(/(?:"[^"]*"?|[^\s"])+/g)) {
    const plain = match[0].replaceAll('"', "");
    const colon = plain.indexOf(":");
    const from = match.index;
    found.push({
      key: colon < 0 ? "" : plain.slice(0, colon),
      value: plain.slice(colon + 1),
      from,
      to: from + match[0].length,
    });
  }
  return found;
}

export function parseText(text: string): Parsed {
  return filterOf(wordsOf(text));
}

export function textOf(filter: Filter): string {
  return termsOf(filter)
    .map(({ key, value }) => `${key}:${/\s/.test(value) ? `"${value}"` : value}`)
    .join(" ");
}

export interface Option {
  /** What the word becomes. */
  readonly insert: string;
  readonly label: string;
  readonly hint: string;
  /** Whether the word is then complete. */
  readonly isWhole: boolean;
}

export interface Completion {
  readonly from: number;
  readonly to: number;
  readonly options: readonly Option[];
}

/** Values that were seen, by key, to choose from. */
export type Known = Readonly<Partial<Record<string, readonly string[]>>>;

const OPTIONS_MAX = 10;
const AGES = ["15m", "1h", "6h", "24h", "7d"];

/** Keys whose values are known beforehand. */
const FIXED: Readonly<Partial<Record<string, readonly string[]>>> = {
  status: JOB_STATES.map((name) => name.toLowerCase()),
  activity: ACTIVITIES,
};

/** What the word at the caret can become. */
export function complete(text: string, caret: number, known: Known): Completion {
  const word = wordsOf(text).find((one) => one.from <= caret && caret <= one.to);
  const from = word?.from ?? caret;
  const to = word?.to ?? caret;
  const typed = text.slice(from, caret).replaceAll('"', "");
  const colon = typed.indexOf(":");
  const options =
    colon < 0 ? keyOptions(typed, known) : valueOptions(typed.slice(0, colon), typed.slice(colon + 1), known);
  return { from, to, options: options.slice(0, OPTIONS_MAX) };
}

function keyOptions(typed: string, known: Known): Option[] {
  const low = typed.toLowerCase();
  const keys = KEYS.filter((key) => key.startsWith(low)).map((key) => ({
    insert: `${key}:`,
    label: `${key}:`,
    hint: MEANING[key],
    isWhole: false,
  }));
  if (low === "") return keys;
  // A bare value finds its key: `index` offers `recipe:index`.
  const values = ["status", "activity", "recipe", "failed_step", "caller"].flatMap((key) =>
    valueOptions(key, low, known),
  );
  return [...keys, ...values];
}

function valueOptions(key: string, typed: string, known: Known): Option[] {
  // Of several states only the last is being written.
  const comma = key === "status" || key === "activity" ? typed.lastIndexOf(",") + 1 : 0;
  const low = typed.slice(comma).toLowerCase();
  const taken = typed.slice(0, comma).split(",");
  const all = valuesOf(key, known);
  return all
    .filter((value) => value.toLowerCase().startsWith(low) && !taken.includes(value))
    .map((value) => {
      const whole = typed.slice(0, comma) + value;
      return { insert: `${key}:${/\s/.test(whole) ? `"${whole}"` : whole}`, label: value, hint: key, isWhole: true };
    });
}

function valuesOf(key: string, known: Known): readonly string[] {
  if (Object.hasOwn(FIXED, key)) return FIXED[key] ?? [];
  if (Object.hasOwn(known, key)) return known[key] ?? [];
  return isAge(key) ? AGES : [];
}

function isAge(key: string): boolean {
  return key === "since" || key === "until";
}

/** The text with an option taken, and where the caret is then. */
export function take(text: string, { from, to }: Completion, option: Option): { text: string; caret: number } {
  const tail = text.slice(to);
  const gap = option.isWhole && !tail.startsWith(" ") ? " " : "";
  const head = text.slice(0, from) + option.insert + gap;
  return { text: head + tail, caret: head.length + (option.isWhole && gap === "" ? 1 : 0) };
}
