import { use } from "react";
import { FieldContext } from "./Field";

/** How anything one can write in looks. */
export const CONTROL =
  "w-full min-w-0 rounded-md border border-line bg-field text-fg placeholder:text-dim hover:border-line2 focus-visible:border-accent focus-visible:outline-1 focus-visible:outline-offset-0 aria-invalid:border-danger disabled:opacity-60";

/** What ties an input to the field around it, if there is one. */
export function useFieldProps() {
  const field = use(FieldContext);
  if (field === null) return {};
  return { id: field.id, "aria-describedby": field.describedBy, "aria-invalid": field.isWrong || undefined };
}
