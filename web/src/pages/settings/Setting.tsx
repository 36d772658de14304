import type { ReactNode } from "react";

interface SettingProps {
  readonly name: string;
  readonly line?: ReactNode;
  readonly children: ReactNode;
}

/** A setting: what it is at the left, what it is set to at the right; one above the other where it is narrow. */
export function Setting({ name, line, children }: SettingProps) {
  return (
    <div className="flex flex-wrap items-center gap-x-6 gap-y-2 border-line/70 border-b px-4 py-3 last:border-b-0">
      <div className="min-w-44 flex-1">
        <p className="font-medium">{name}</p>
        {line !== undefined && <p className="text-[12px] text-dim">{line}</p>}
      </div>
      {children}
    </div>
  );
}
