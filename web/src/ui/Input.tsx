import type { ComponentProps } from "react";
import { CONTROL, useFieldProps } from "./control";

export function Input({ className = "", ...rest }: ComponentProps<"input">) {
  return <input {...useFieldProps()} {...rest} className={`h-7 px-2 ${CONTROL} ${className}`} />;
}
