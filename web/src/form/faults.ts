/** The server's faults, each at the field that it is about. */
import type { Draft } from "./draft";
import { down, upwards } from "./pointer";
import type { Spec } from "./spec";
import type { Faults } from "./value";

export interface ServerFault {
  readonly pointer: string;
  readonly message: string;
}

export interface Sorted {
  readonly faults: Faults;
  /** The faults that belong to no field. */
  readonly others: readonly ServerFault[];
}

const MESSAGE_MAX = 300;

/** `within` is where the inputs are in what was sent. */
export function sortFaults(spec: Spec, draft: Draft, told: readonly ServerFault[], within = "/inputs"): Sorted {
  const fields = new Set(pointersOf(spec, draft, ""));
  const faults = new Map<string, string>();
  const others: ServerFault[] = [];
  for (const fault of told) {
    const place = placeOf(fault, fields, within);
    const message = fault.message.slice(0, MESSAGE_MAX);
    if (place === null) others.push({ pointer: fault.pointer, message });
    else faults.set(place, faults.has(place) ? `${faults.get(place)}; ${message}` : message);
  }
  return { faults, others };
}

function placeOf(fault: ServerFault, fields: ReadonlySet<string>, within: string): string | null {
  if (fault.pointer !== within && !fault.pointer.startsWith(`${within}/`)) return null;
  const pointer = fault.pointer.slice(within.length);
  // What is missing is told of the object that it is missing from.
  const missing = /^"(.*)" is a required property$/s.exec(fault.message)?.[1];
  const exact = missing === undefined ? pointer : down(pointer, missing);
  return upwards(exact).find((one) => fields.has(one)) ?? null;
}

/** Every place that has a field, or a box around fields, which can say something. */
export function pointersOf(spec: Spec, draft: Draft, pointer: string): string[] {
  const here = pointer === "" && spec.kind === "object" ? [] : [pointer];
  if (spec.kind === "object" && draft.kind === "object")
    return here.concat(
      spec.fields.flatMap((field) => {
        const inner = draft.fields.get(field.name);
        return inner === undefined ? [] : pointersOf(field.spec, inner, down(pointer, field.name));
      }),
    );
  if (spec.kind === "list" && draft.kind === "list")
    return here.concat((draft.items ?? []).flatMap((item, i) => pointersOf(spec.item, item.draft, down(pointer, i))));
  return here;
}
