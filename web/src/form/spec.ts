/**
 * From a JSON Schema to the fields of a form. The schema comes from the author of the recipe, so nothing of it is trusted:
 * what cannot be read, goes round in circles or is too large becomes a field for JSON, which can hold everything.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

interface Common {
  /** What the schema says it is for. */
  readonly help: string;
  /** What the server takes when nothing is given; `undefined` when there is no default. */
  readonly fallback: Json | undefined;
  /** Whether nothing may be given on purpose: an empty field is then `null`. */
  readonly isNullable: boolean;
}
export interface TextSpec extends Common {
  readonly kind: "text";
  readonly format: string;
  readonly lengthMin: number;
  readonly lengthMax: number;
}
export interface NumberSpec extends Common {
  readonly kind: "number";
  readonly isInteger: boolean;
  readonly least: number;
  readonly most: number;
  /** Whether the bounds themselves are left out. */
  readonly isOpenBelow: boolean;
  readonly isOpenAbove: boolean;
}
export interface BooleanSpec extends Common {
  readonly kind: "boolean";
}
export interface ChoiceSpec extends Common {
  readonly kind: "choice";
  readonly options: readonly Json[];
}
export interface ObjectSpec extends Common {
  readonly kind: "object";
  readonly fields: readonly NamedSpec[];
}
export interface ListSpec extends Common {
  readonly kind: "list";
  readonly item: Spec;
  readonly countMin: number;
  readonly countMax: number;
}
export interface JsonSpec extends Common {
  readonly kind: "json";
  /** Why there is no better field, for the reader. */
  readonly why: string;
}
export type Spec = TextSpec | NumberSpec | BooleanSpec | ChoiceSpec | ObjectSpec | ListSpec | JsonSpec;

export interface NamedSpec {
  readonly name: string;
  readonly title: string;
  readonly isRequired: boolean;
  readonly spec: Spec;
}

export const DEPTH_MAX = 6;
export const FIELDS_MAX = 100;
/** In all: a schema that refers to itself a few times at each level would else grow without end. */
export const SPECS_MAX = 500;
const OPTIONS_MAX = 200;
const TEXT_MAX = 500;
const REFERENCES_MAX = 16;

type Schema = Record<string, unknown>;

/** The whole document, for its references, and how many more fields may be made. */
interface Source {
  readonly root: unknown;
  left: number;
}

/** The inputs of a recipe: always an object, also where the schema says otherwise. */
export function specOf(schema: unknown): Spec {
  return read(isObject(schema) ? schema : {}, { root: schema, left: SPECS_MAX }, 0);
}

function read(written: unknown, source: Source, depth: number): Spec {
  if (written === true) return jsonSpec({}, "anything fits", false);
  if (!isObject(written)) return jsonSpec({}, "the schema cannot be read", false);
  const resolved = resolve(written, source.root);
  if (resolved === null) return jsonSpec(written, "the schema refers to something that is not there", false);
  const { schema, isNullable } = withoutNull(resolved, source.root);
  const common = commonOf({ ...schema, ...texts(written) }, isNullable || takesNull(schema));
  if (depth > DEPTH_MAX || --source.left < 0) return { ...common, kind: "json", why: "it is too large for fields" };
  if (Object.hasOwn(schema, "const")) return choice(common, [schema.const]);
  if (Array.isArray(schema.enum)) return choice(common, schema.enum);
  for (const word of ["anyOf", "oneOf", "allOf", "not", "if"]) {
    if (Object.hasOwn(schema, word)) return { ...common, kind: "json", why: "it may have several shapes" };
  }
  return byType(schema, source, depth, common);
}

function byType(schema: Schema, source: Source, depth: number, common: Common): Spec {
  const types = typesOf(schema).filter((type) => type !== "null");
  if (types.length > 1) return { ...common, kind: "json", why: "it may have several types" };
  switch (types[0]) {
    case "string":
      return {
        ...common,
        kind: "text",
        format: text(schema.format),
        lengthMin: number(schema.minLength, 0),
        lengthMax: number(schema.maxLength, Number.POSITIVE_INFINITY),
      };
    case "integer":
    case "number":
      return numberSpec(schema, types[0] === "integer", common);
    case "boolean":
      return { ...common, kind: "boolean" };
    case "object":
      return objectSpec(schema, source, depth, common);
    case "array":
      if (!isObject(schema.items)) return { ...common, kind: "json", why: "its elements may be anything" };
      return {
        ...common,
        kind: "list",
        item: read(schema.items, source, depth + 1),
        countMin: number(schema.minItems, 0),
        countMax: number(schema.maxItems, Number.POSITIVE_INFINITY),
      };
    default:
      return { ...common, kind: "json", why: "anything fits" };
  }
}

function numberSpec(schema: Schema, isInteger: boolean, common: Common): NumberSpec {
  const [least, above] = [
    number(schema.minimum, Number.NEGATIVE_INFINITY),
    number(schema.exclusiveMinimum, Number.NaN),
  ];
  const [most, below] = [number(schema.maximum, Number.POSITIVE_INFINITY), number(schema.exclusiveMaximum, Number.NaN)];
  return {
    ...common,
    kind: "number",
    isInteger,
    least: above >= least ? above : least,
    most: below <= most ? below : most,
    isOpenBelow: above >= least,
    isOpenAbove: below <= most,
  };
}

function objectSpec(schema: Schema, source: Source, depth: number, common: Common): Spec {
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  const isOpen = schema.additionalProperties !== undefined && schema.additionalProperties !== false;
  // Other names could be given than there would be fields for.
  if (isOpen || isObject(schema.patternProperties)) return { ...common, kind: "json", why: "its names are free" };
  if (properties.length === 0 && depth > 0) return { ...common, kind: "json", why: "its names are free" };
  if (properties.length > FIELDS_MAX) return { ...common, kind: "json", why: "it has too many fields" };
  const required = new Set(Array.isArray(schema.required) ? schema.required : []);
  const fields = properties.map(([name, written]): NamedSpec => {
    const spec = read(written, source, depth + 1);
    const title = isObject(written) ? text(written.title) : "";
    // The server puts defaults in at the top, and nowhere deeper.
    const isRequired = required.has(name) && (depth > 0 || spec.fallback === undefined);
    return { name, title: title || name, isRequired, spec };
  });
  // What is needed comes first. Else they stand as the schema has them, which the server may have sorted by name.
  return { ...common, kind: "object", fields: fields.sort((a, b) => Number(b.isRequired) - Number(a.isRequired)) };
}

/** Follow `$ref` inside the document, as often as is sensible. */
function resolve(written: Schema, root: unknown): Schema | null {
  let schema = written;
  for (let hops = 0; typeof schema.$ref === "string"; hops++) {
    const next = hops < REFERENCES_MAX ? at(root, schema.$ref) : null;
    if (!isObject(next)) return null;
    schema = next;
  }
  return schema;
}

function at(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#")) return null;
  let found: unknown = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (!isObject(found) || !Object.hasOwn(found, name)) return null;
    found = found[name];
  }
  return found;
}

/** `anyOf: [X, null]`, which is how an optional type is written, is X that may be empty. */
function withoutNull(schema: Schema, root: unknown): { schema: Schema; isNullable: boolean } {
  const branches = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(branches) || branches.length !== 2) return { schema, isNullable: false };
  const others = branches.filter((branch) => !(isObject(branch) && branch.type === "null"));
  const only = others.length === 1 && isObject(others[0]) ? resolve(others[0], root) : null;
  if (only === null) return { schema, isNullable: false };
  const { anyOf: _anyOf, oneOf: _oneOf, ...rest } = schema;
  return { schema: { ...only, ...rest }, isNullable: true };
}

function choice(common: Common, options: readonly unknown[]): Spec {
  const isNullable = common.isNullable || options.includes(null);
  const given = options.filter((option) => option !== null) as Json[];
  if (given.length > OPTIONS_MAX || given.some((option) => typeof option === "object"))
    return { ...common, isNullable, kind: "json", why: "its choices are not plain words" };
  return { ...common, isNullable, kind: "choice", options: given };
}

function jsonSpec(schema: Schema, why: string, isNullable: boolean): JsonSpec {
  return { ...commonOf(schema, isNullable), kind: "json", why };
}

function commonOf(schema: Schema, isNullable: boolean): Common {
  const fallback = Object.hasOwn(schema, "default") ? (schema.default as Json) : undefined;
  return { help: text(schema.description), fallback, isNullable };
}

/** What may be written beside a `$ref` and is meant for this place. */
function texts(written: Schema): Schema {
  return Object.fromEntries(
    ["description", "default"].flatMap((n) => (Object.hasOwn(written, n) ? [[n, written[n]]] : [])),
  );
}

function typesOf(schema: Schema): string[] {
  if (typeof schema.type === "string") return [schema.type];
  if (Array.isArray(schema.type)) return schema.type.filter((type) => typeof type === "string");
  return isObject(schema.properties) ? ["object"] : [];
}

function takesNull(schema: Schema): boolean {
  return typesOf(schema).length > 1 && typesOf(schema).includes("null");
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string {
  return typeof value === "string" ? value.slice(0, TEXT_MAX) : "";
}

function number(value: unknown, otherwise: number): number {
  return typeof value === "number" && Number.isFinite(value) ? value : otherwise;
}
