/** The submission as a command and as code, to repeat it without the console. */
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
  lines.push(`--json ${shell(ascii(JSON.stringify(bodyOf(wanted))))}`);
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

/** A text that the command line would read as JSON or as a file's name, or that could hide something, goes as JSON. */
function cliValue(value: Json): string {
  const isPlain = typeof value === "string" && /^[ -?A-~][ -~]*$/.test(value) && !isJson(value);
  return isPlain ? value : ascii(JSON.stringify(value));
}

/** Printable ASCII: a line separator, or a mark that turns text around, must not hide in what is pasted. */
function ascii(json: string): string {
  return json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** One word of a shell, with any content. */
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
  // JSON's escapes are Python's too, but a character that JSON writes as two is one to Python.
  return JSON.stringify(value).replace(/[^ -~]/gu, (char) => {
    const code = (char.codePointAt(0) ?? 0).toString(16);
    return code.length <= 4 ? `\\u${code.padStart(4, "0")}` : `\\U${code.padStart(8, "0")}`;
  });
}
