/** The same submission in other words, for those who want to do it again without a page. */
import type { Json } from "./spec";

export interface Submission {
  readonly recipe: string;
  readonly inputs: { readonly [name: string]: Json };
  readonly version?: number;
  readonly key?: string;
  readonly labels?: { readonly [name: string]: string };
  readonly priority?: number;
  readonly deadline?: string;
}

/** What `POST /jobs` takes; the key goes into a header of its own. */
export function bodyOf(wanted: Submission): Record<string, unknown> {
  const { key: _key, ...body } = wanted;
  return body;
}

export function asCli(wanted: Submission): string {
  const words = ["windlass", "submit", shell(wanted.recipe)];
  for (const [name, value] of Object.entries(wanted.inputs)) words.push("--input", shell(`${name}=${cliValue(value)}`));
  for (const [name, value] of Object.entries(wanted.labels ?? {})) words.push("--label", shell(`${name}=${value}`));
  if (wanted.key) words.push("--key", shell(wanted.key));
  if (wanted.priority) words.push("--priority", String(wanted.priority));
  if (wanted.deadline) words.push("--deadline", shell(wanted.deadline));
  return words.join(" ");
}

export function asCurl(wanted: Submission, origin: string): string {
  const lines = [`curl ${shell(`${origin}/jobs`)}`, '-H "X-API-Key: $WINDLASS_API_KEY"'];
  if (wanted.key) lines.push(`-H ${shell(`Idempotency-Key: ${wanted.key}`)}`);
  lines.push(`--json ${shell(JSON.stringify(bodyOf(wanted)))}`);
  return lines.join(" \\\n  ");
}

export function asPython(wanted: Submission): string {
  const words = [python(wanted.recipe), `inputs=${python(wanted.inputs)}`];
  if (wanted.key) words.push(`key=${python(wanted.key)}`);
  if (wanted.labels && Object.keys(wanted.labels).length > 0) words.push(`labels=${python(wanted.labels)}`);
  if (wanted.priority) words.push(`priority=${wanted.priority}`);
  if (wanted.deadline) words.push(`deadline=${python(wanted.deadline)}`);
  if (wanted.version !== undefined) words.push(`version=${wanted.version}`);
  return [
    "import windlass",
    "",
    "with windlass.Client() as client:",
    `    job = client.submit(${words.join(", ")})`,
    "    print(job.result())",
  ].join("\n");
}

/** A text that the command line would read as JSON or as a file's name is quoted as JSON. */
function cliValue(value: Json): string {
  if (typeof value !== "string") return JSON.stringify(value);
  return value === "" || value.startsWith("@") || isJson(value) ? JSON.stringify(value) : value;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** One word of a shell, whatever is in it. */
export function shell(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** A value as Python writes it. */
export function python(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, one]) => `${python(name)}: ${python(one)}`)
      .join(", ")}}`;
  // JSON's escapes are Python's, too, but for the pairs that JSON makes of characters outside the first plane.
  return JSON.stringify(value);
}
