/** Search parameters as values: a shape with its first values, read from and written to the address. */

export type Value = string | number | boolean | readonly string[];
export type Shape = Readonly<Record<string, Value>>;

/** What a first value stands for, without being narrowed to it: `tab: "graph"` holds any text. */
export type Widened<S extends Shape> = {
  readonly [K in keyof S]: S[K] extends string
    ? string
    : S[K] extends number
      ? number
      : S[K] extends boolean
        ? boolean
        : readonly string[];
};

/** What the address says. A value that cannot be read is as if it were not there: people edit addresses by hand. */
export function readSearch<S extends Shape>(first: S, search: string): Widened<S> {
  const params = new URLSearchParams(search);
  const entries = Object.entries(first).map(([name, value]) => [name, readOne(params, name, value)]);
  return Object.fromEntries(entries) as Widened<S>;
}

/** The address with these values; those equal to the first are left out, and what is not of the shape is kept. */
export function writeSearch<S extends Shape>(first: S, search: string, patch: Partial<Widened<S>>): string {
  const params = new URLSearchParams(search);
  for (const [name, value] of Object.entries(patch) as [string, Value | undefined][]) {
    const usual = first[name];
    if (usual === undefined) continue;
    params.delete(name);
    if (value === undefined || isSame(value, usual)) continue;
    // A list that was emptied is not the first one: it is written as nothing.
    if (typeof value === "object") for (const one of value.length === 0 ? [""] : value) params.append(name, one);
    else params.set(name, String(value));
  }
  const text = params.toString();
  return text === "" ? "" : `?${text}`;
}

function readOne(params: URLSearchParams, name: string, first: Value): Value {
  if (typeof first === "object") return params.has(name) ? params.getAll(name).filter((one) => one !== "") : first;
  const text = params.get(name);
  if (text === null) return first;
  if (typeof first === "boolean") return text === "true" ? true : text === "false" ? false : first;
  if (typeof first === "string") return text;
  const number = Number(text);
  return text.trim() === "" || !Number.isFinite(number) ? first : number;
}

function isSame(a: Value, b: Value): boolean {
  if (typeof a !== "object" || typeof b !== "object") return a === b;
  return a.length === b.length && a.every((one, i) => one === b[i]);
}
