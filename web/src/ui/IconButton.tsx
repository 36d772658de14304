import type { ComponentProps, ReactNode } from "react";

export interface IconButtonProps extends Omit<ComponentProps<"button">, "children"> {
  /** What it does: its name, and what is shown when one points at it. */
  readonly label: string;
  readonly children: ReactNode;
  readonly hint?: string | undefined;
  readonly isOn?: boolean | undefined;
  readonly why?: string | undefined;
  readonly size?: "small" | "usual";
}

export function IconButton({
  label,
  hint,
  isOn,
  why,
  size = "usual",
  className = "",
  children,
  ...rest
}: IconButtonProps) {
  const tip = why ?? (hint === undefined ? label : `${label}  ${hint}`);
  return (
    <button
      type="button"
      aria-label={label}
      aria-pressed={isOn}
      aria-disabled={why === undefined ? undefined : true}
      data-tip={tip}
      {...rest}
      onClick={why === undefined ? rest.onClick : undefined}
      className={`grid ${size === "small" ? "size-6" : "size-7"} shrink-0 cursor-pointer place-items-center rounded-md hover:bg-panel2 aria-disabled:cursor-not-allowed aria-disabled:opacity-60 ${isOn ? "bg-panel2 text-accent" : "text-dim hover:text-fg"} ${className}`}
    >
      {children}
    </button>
  );
}
