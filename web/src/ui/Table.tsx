import type { ComponentProps } from "react";

/** A table that scrolls sideways in its own frame where the page is narrow. */
export function Table({ className = "", ...rest }: ComponentProps<"table">) {
  return (
    // A region that scrolls must be reachable by key; its name is the table's.
    <section className="min-w-0 overflow-x-auto" aria-label={rest["aria-label"]} tabIndex={-1}>
      <table className={`w-full border-collapse text-left ${className}`} {...rest} />
    </section>
  );
}

export function Th({ className = "", ...rest }: ComponentProps<"th">) {
  return (
    <th
      scope="col"
      className={`h-8 whitespace-nowrap border-line border-b px-3 font-medium text-[11px] text-dim first:pl-4 last:pr-4 ${className}`}
      {...rest}
    />
  );
}

export function Td({ className = "", ...rest }: ComponentProps<"td">) {
  return <td className={`h-row px-3 first:pl-4 last:pr-4 ${className}`} {...rest} />;
}

interface TrProps extends ComponentProps<"tr"> {
  readonly isSelected?: boolean | undefined;
}

export function Tr({ isSelected, className = "", ...rest }: TrProps) {
  return (
    <tr
      aria-selected={isSelected}
      className={`border-line/70 border-b last:border-b-0 hover:bg-hover ${isSelected ? "bg-chosen" : ""} ${className}`}
      {...rest}
    />
  );
}
