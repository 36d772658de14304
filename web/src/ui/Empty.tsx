import type { LucideIcon } from "lucide-react";
import type { ReactNode } from "react";
import { Copy } from "./Copy";

interface EmptyProps {
  readonly icon: LucideIcon;
  readonly title: string;
  readonly line?: ReactNode;
  /** What one would type to change that. */
  readonly command?: string | undefined;
  readonly action?: ReactNode;
}

/** Nothing is here, why, and what to do about it. Never shown while something is still loading. */
export function Empty({ icon: Icon, title, line, command, action }: EmptyProps) {
  return (
    <div className="grid grid-cols-[minmax(0,1fr)] justify-items-center px-4 py-14 text-center">
      <div className="flex w-full max-w-md flex-col items-center gap-2">
        <span className="mb-2 grid size-10 place-items-center rounded-xl border border-line bg-panel text-dim shadow-raise">
          <Icon size={18} strokeWidth={1.6} aria-hidden="true" />
        </span>
        <h2 className="font-semibold text-[14px]">{title}</h2>
        {line !== undefined && <p className="text-dim">{line}</p>}
        {command !== undefined && (
          <div className="mt-2 flex max-w-full items-center gap-1 rounded-md border border-line bg-field py-0.5 pr-0.5 pl-3">
            <code className="min-w-0 overflow-x-auto whitespace-nowrap font-mono text-[12px]">{command}</code>
            <Copy text={command} label="Copy the command" />
          </div>
        )}
        {action !== undefined && <div className="mt-3 max-w-full">{action}</div>}
      </div>
    </div>
  );
}
