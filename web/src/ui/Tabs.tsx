import type { KeyboardEvent, ReactNode } from "react";

export interface Tab<Id extends string = string> {
  readonly id: Id;
  readonly label: string;
  readonly count?: number | undefined;
}

interface TabsProps<Id extends string> {
  readonly value: Id;
  readonly onChange: (id: Id) => void;
  readonly tabs: readonly Tab<Id>[];
  readonly label?: string;
}

/** One stop of the Tab key; the arrows, Home and End walk along. */
export function Tabs<Id extends string>({ value, onChange, tabs, label = "Views" }: TabsProps<Id>) {
  const walk = (event: KeyboardEvent<HTMLDivElement>): void => {
    const at = tabs.findIndex((tab) => tab.id === value);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    const tab = to === undefined ? undefined : tabs[(to + tabs.length) % tabs.length];
    if (tab === undefined) return;
    event.preventDefault();
    onChange(tab.id);
    document.getElementById(tabId(tab.id))?.focus();
  };
  return (
    <div
      role="tablist"
      aria-label={label}
      onKeyDown={walk}
      className="no-scrollbar flex gap-1 overflow-x-auto border-line border-b px-3"
    >
      {tabs.map((tab) => (
        <button
          key={tab.id}
          id={tabId(tab.id)}
          type="button"
          role="tab"
          aria-selected={tab.id === value}
          tabIndex={tab.id === value ? 0 : -1}
          onClick={() => onChange(tab.id)}
          className="relative h-9 shrink-0 cursor-pointer px-2.5 text-dim outline-offset-[-3px] hover:text-fg aria-selected:font-medium aria-selected:text-fg aria-selected:after:absolute aria-selected:after:inset-x-0 aria-selected:after:bottom-[-1px] aria-selected:after:h-0.5 aria-selected:after:rounded-full aria-selected:after:bg-accent"
        >
          {tab.label}
          {tab.count !== undefined && <span className="ml-1.5 text-[11px] text-dim tabular-nums">{tab.count}</span>}
        </button>
      ))}
    </div>
  );
}

export interface TabPanelProps {
  readonly id: string;
  readonly className?: string;
  readonly children: ReactNode;
}

export function TabPanel({ id, className = "", children }: TabPanelProps) {
  return (
    <div role="tabpanel" aria-labelledby={tabId(id)} className={className}>
      {children}
    </div>
  );
}

function tabId(id: string): string {
  return `tab-${id}`;
}
