import type { ComponentProps } from "react";
import { CONTROL, useFieldProps } from "./control";

export function TextArea({ className = "", ...rest }: ComponentProps<"textarea">) {
  return <textarea rows={4} {...useFieldProps()} {...rest} className={`px-2 py-1.5 ${CONTROL} ${className}`} />;
}
