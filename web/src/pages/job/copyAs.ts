/** The same job once more, as a command, a request or a program: no content of its inputs is ever run. */

export interface Again {
  readonly recipe: string;
  readonly version: number | null;
  /** The inputs as the server wrote them: a number may be longer than this page can count. */
  readonly inputs: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly priority: number;
}

/** For a shell of the Bourne family: between single quotes nothing has a meaning but the quote itself. */
export function shell(text: string): string {
  if (/^[A-Za-z0-9_./:@%+=,-]+$/.test(text)) return text;
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** JSON in printable ASCII on one line: a line separator or a mark that turns text around must not hide in a paste. */
export function plain(json: string): string {
  return json
    .replace(/[\n\r\t]/g, " ")
    .replace(/[^ -~]/gu, (char) =>
      [...Array(char.length).keys()].map((i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, "0")}`).join(""),
    );
}

export function asCli(again: Again, server: string): string {
  const lines = [`windlass submit ${shell(again.recipe)} --server ${shell(server)}`];
  const inputs = Object.entries(inputsIn(again.inputs));
  // What would be read otherwise goes through standard input, as it is.
  const isOdd = isLong(again.inputs) || inputs.some(([name]) => !/^[A-Za-z_][\w.-]*$/.test(name));
  if (isOdd) lines.push("--input @-");
  else for (const [name, value] of inputs) lines.push(`--input ${shell(`${name}=${plain(JSON.stringify(value))}`)}`);
  for (const [name, value] of Object.entries(again.labels)) lines.push(`--label ${shell(`${name}=${value}`)}`);
  if (again.priority !== 0) lines.push(`--priority ${again.priority}`);
  const command = lines.join(" \\\n  ");
  return isOdd ? `${command} <<'WINDLASS'\n${plain(again.inputs)}\nWINDLASS\n` : `${command}\n`;
}

export function asCurl(again: Again, server: string): string {
  return [
    `curl -sS ${shell(`${server}/jobs`)}`,
    `-H "X-API-Key: $WINDLASS_API_KEY"`,
    "-H 'Content-Type: application/json'",
    `--data-binary ${shell(bodyOf(again))}`,
  ]
    .join(" \\\n  ")
    .concat("\n");
}

export function asPython(again: Again, server: string): string {
  const options = [
    `inputs=${isLong(again.inputs) ? `json.loads(${python(plain(again.inputs))})` : python(inputsIn(again.inputs), 1)}`,
    ...(Object.keys(again.labels).length === 0 ? [] : [`labels=${python(again.labels, 1)}`]),
    ...(again.priority === 0 ? [] : [`priority=${again.priority}`]),
    ...(again.version === null ? [] : [`version=${again.version}`]),
  ];
  return [
    ...(isLong(again.inputs) ? ["import json", ""] : []),
    "import windlass",
    "",
    `with windlass.Client(${python(server)}) as client:`,
    `    job = client.submit(${[python(again.recipe), ...options].join(", ")})`,
    "    print(job.result())",
    "",
  ].join("\n");
}

/** A value as Python writes it. */
export function python(value: unknown, depth = 0): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(value);
  // JSON's escapes are Python's, once everything beyond ASCII is one; but a pair of halves is one sign there.
  if (typeof value === "string") return pythonText(value);
  const pad = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  const items = Array.isArray(value)
    ? value.map((one) => python(one, depth + 1))
    : Object.entries(value as object).map(([name, one]) => `${pythonText(name)}: ${python(one, depth + 1)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  const flat = `${open}${items.join(", ")}${close}`;
  if (flat.length <= 60 && !flat.includes("\n")) return flat;
  return `${open}\n${items.map((one) => `${pad}${one},\n`).join("")}${end}${close}`;
}

function pythonText(text: string): string {
  return `"${[...text]
    .map((char) => {
      const code = char.codePointAt(0) as number;
      if (char === '"' || char === "\\") return `\\${char}`;
      if (char === "\n") return "\\n";
      if (code >= 0x20 && code < 0x7f) return char;
      return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
    })
    .join("")}"`;
}

function bodyOf(again: Again): string {
  const rest = {
    recipe: again.recipe,
    ...(Object.keys(again.labels).length === 0 ? {} : { labels: again.labels }),
    ...(again.priority === 0 ? {} : { priority: again.priority }),
    ...(again.version === null ? {} : { version: again.version }),
  };
  return `${plain(JSON.stringify(rest)).slice(0, -1)},"inputs":${plain(again.inputs)}}`;
}

/** Whether a number has more digits than a double can hold: read and written again it would be another. */
function isLong(json: string): boolean {
  return /[\d.eE+-]{16,}/.test(json.replace(/"(?:[^"\\]|\\.)*"/g, '""'));
}

function inputsIn(json: string): Readonly<Record<string, unknown>> {
  const value: unknown = JSON.parse(json);
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}
