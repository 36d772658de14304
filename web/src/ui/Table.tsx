import { type ComponentProps, useRef } from "react";
import { useOverflow } from "../use/useOverflow";

/** A table that scrolls sideways in its own frame where the page is narrow. */
export function Table({ className = "", ...rest }: ComponentProps<"table">) {
  const frame = useRef<HTMLElement>(null);
  const doesScroll = useOverflow(frame);
  return (
    <section
      ref={frame}
      className="relative min-w-0 overflow-x-auto focus-visible:outline-offset-[-2px]"
      {...(doesScroll && { tabIndex: 0, "aria-label": rest["aria-label"] ?? "Table" })}
    >
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
      className={`border-line/70 border-b last:border-b-0 ${isSelected ? "bg-chosen" : "hover:bg-hover"} ${className}`}
      {...rest}
    />
  );
}
