import type { ComponentProps, MouseEvent, ReactNode } from "react";
import { Spinner } from "./Spinner";

export type Variant = "primary" | "plain" | "danger" | "ghost";

const LOOK: Readonly<Record<Variant, string>> = {
  primary: "border-transparent bg-accent text-on-accent hover:bg-accent-hover shadow-raise",
  plain: "border-line bg-panel text-fg hover:border-line2 hover:bg-panel2 shadow-raise",
  danger: "border-line bg-panel text-danger hover:border-danger/50 hover:bg-danger/10 shadow-raise",
  ghost: "border-transparent text-dim hover:bg-panel2 hover:text-fg",
};

const SIZE = { small: "h-6 px-2 text-[12px]", usual: "h-7 px-2.5", large: "h-8 px-3" };

export interface ButtonProps extends ComponentProps<"button"> {
  readonly variant?: Variant;
  /** Small ones stand in rows. */
  readonly size?: "small" | "usual" | "large";
  readonly busy?: boolean | undefined;
  readonly icon?: ReactNode;
  /** Why it cannot be pressed. The button stays in reach, so that screen readers announce the reason. */
  readonly why?: string | undefined;
}

export function Button(props: ButtonProps) {
  const { variant = "plain", size = "usual", busy = false, icon, why, className = "", ...rest } = props;
  const isOff = busy || why !== undefined;
  const press = (event: MouseEvent<HTMLButtonElement>): void => {
    if (isOff) event.preventDefault();
    else rest.onClick?.(event);
  };
  return (
    <button
      type="button"
      {...rest}
      onClick={press}
      aria-disabled={isOff || rest["aria-disabled"]}
      aria-busy={busy || undefined}
      data-tip={why ?? (rest as { "data-tip"?: string })["data-tip"]}
      className={`inline-flex shrink-0 cursor-pointer select-none items-center justify-center gap-1.5 whitespace-nowrap rounded-md border font-medium disabled:cursor-not-allowed disabled:opacity-50 aria-disabled:cursor-not-allowed aria-disabled:opacity-60 ${SIZE[size]} ${LOOK[variant]} ${className}`}
    >
      {busy ? <Spinner /> : icon}
      {rest.children}
    </button>
  );
}
