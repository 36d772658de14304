import { Link } from "wouter";
import type { Look } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import type { Overview } from "./overview";

interface Total {
  readonly word: string;
  readonly look: Look;
  readonly count: number;
  readonly link: string;
}

/** How many jobs are open, and where they stand; each leads to its list. One of which nothing runs now is waiting. */
export function Totals({ overview }: { readonly overview: Overview }) {
  const { totals } = overview;
  const all: readonly Total[] = [
    {
      word: "Open",
      look: "pending",
      count: totals.open,
      link: "/jobs?status=pending,queued,dispatching,processing,preview,approval_required",
    },
    { word: "Running", look: "running", count: totals.running, link: "/jobs?status=processing,preview,dispatching" },
    { word: "Queued", look: "queued", count: totals.queued, link: "/jobs?status=pending,queued" },
    {
      word: "Waiting",
      look: "waiting",
      count: totals.waiting,
      link: "/jobs?status=processing,preview,approval_required",
    },
  ];
  return (
    <ul className="grid grid-cols-2 gap-3 sm:grid-cols-4">
      {all.map((one) => (
        <li key={one.word}>
          <Link
            href={one.link}
            className="flex flex-col gap-0.5 rounded-xl border border-line bg-panel px-4 py-2.5 hover:border-line2 hover:bg-hover"
          >
            <span className="flex items-center gap-1.5 text-[12px] text-dim">
              <StateIcon look={one.look} size={12} />
              {one.word}
            </span>
            <span className="font-semibold text-[20px] tabular-nums leading-tight tracking-tight">
              {one.count.toLocaleString("en")}
              {overview.is_capped && <span className="text-dim">+</span>}
            </span>
          </Link>
        </li>
      ))}
    </ul>
  );
}
