import type { LucideIcon } from "lucide-react";
import {
  BatteryWarning,
  ChevronRight,
  CircleAlert,
  CircleCheck,
  Hand,
  Hourglass,
  MailX,
  PackageX,
  ServerOff,
  TrendingDown,
  Unplug,
  Wallet,
} from "lucide-react";
import { Link } from "wouter";
import type { AttentionKind } from "../../api/schemas";
import { color, type Look } from "../../state";
import { Panel } from "../../ui/Panel";
import { type Attention, consolePath } from "./overview";

const KINDS: Readonly<Record<AttentionKind, readonly [LucideIcon, Look]>> = {
  failing_recipe: [TrendingDown, "failed"],
  waiting_person: [Hand, "waiting"],
  budget_short: [Wallet, "waiting"],
  dead_letters: [MailX, "failed"],
  no_workers: [ServerOff, "failed"],
  missing_handler: [PackageX, "failed"],
  lost_worker: [Unplug, "retrying"],
  breaker_open: [BatteryWarning, "retrying"],
  old_queue: [Hourglass, "retrying"],
};

/** What needs a person's attention, the worst first, each with a link. */
export function AttentionList({ items }: { readonly items: readonly Attention[] }) {
  if (items.length === 0)
    return (
      <p className="flex items-center gap-2 rounded-xl border border-line bg-panel px-4 py-2.5">
        <CircleCheck size={15} aria-hidden="true" style={{ color: color("succeeded") }} />
        Nothing needs you.
        <span className="hidden text-dim sm:inline">
          No failing recipe, no dead letter, no job that waits for a person or for money.
        </span>
      </p>
    );
  return (
    <Panel title="Needs attention" lead={items.length}>
      <ul>
        {items.map((item) => (
          <li key={item.kind + item.link + item.title} className="border-line/70 border-b last:border-b-0">
            <Entry item={item} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function Entry({ item }: { readonly item: Attention }) {
  const [Icon, look] = KINDS[item.kind] ?? [CircleAlert, "retrying" as const];
  return (
    <Link
      href={consolePath(item.link)}
      className="flex min-h-11 items-center gap-3 px-4 py-1.5 outline-offset-[-2px] hover:bg-hover"
    >
      <span
        className="grid size-7 shrink-0 place-items-center rounded-lg"
        style={{ color: color(look), background: `color-mix(in srgb, ${color(look)} 12%, transparent)` }}
      >
        <Icon size={15} aria-hidden="true" />
      </span>
      <span className="flex min-w-0 flex-1 flex-col gap-x-3 sm:flex-row sm:items-baseline">
        <span className="font-medium">{item.title}</span>
        <span className="min-w-0 text-dim sm:truncate">{item.detail}</span>
      </span>
      <ChevronRight size={14} aria-hidden="true" className="shrink-0 text-dim" />
    </Link>
  );
}
