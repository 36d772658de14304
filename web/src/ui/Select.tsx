import { ChevronDown } from "lucide-react";
import type { ComponentProps } from "react";
import { CONTROL, useFieldProps } from "./control";

export interface Choice {
  readonly value: string;
  readonly label: string;
}

interface SelectProps extends Omit<ComponentProps<"select">, "onChange"> {
  readonly choices?: readonly Choice[];
  readonly onChange?: (value: string) => void;
}

/** The system's own list: it works on every screen, with every key and every reader. */
export function Select({ choices, onChange, className = "", children, ...rest }: SelectProps) {
  return (
    <span className={`relative inline-flex min-w-0 ${className}`}>
      <select
        {...useFieldProps()}
        {...rest}
        onChange={(event) => onChange?.(event.target.value)}
        className={`h-7 cursor-pointer appearance-none truncate pr-7 pl-2 ${CONTROL}`}
      >
        {choices?.map((choice) => (
          <option key={choice.value} value={choice.value}>
            {choice.label}
          </option>
        ))}
        {children}
      </select>
      <ChevronDown
        size={13}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 right-2 -translate-y-1/2 text-dim"
      />
    </span>
  );
}
