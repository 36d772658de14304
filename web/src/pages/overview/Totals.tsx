import { Link } from "wouter";
import { ACTIVITIES, type Activity, activityLook, activityWord, type Look } from "../../state";
import { StateIcon } from "../../ui/StateIcon";
import type { Overview } from "./overview";

interface Total {
  readonly word: string;
  readonly look: Look;
  readonly count: number;
  readonly link: string;
}

/** Rare states are shown only if there are such jobs. */
const SELDOM: readonly Activity[] = ["sleeping", "paused"];

/** How many jobs are open and what they are doing; each leads to the list of just these. */
export function Totals({ overview }: { readonly overview: Overview }) {
  const { totals } = overview;
  const doing = ACTIVITIES.filter((one) => !SELDOM.includes(one) || totals[one] > 0);
  const all: readonly Total[] = [
    { word: "Open", look: "pending", count: totals.open, link: `/jobs?activity=${ACTIVITIES.join(",")}` },
    ...doing.map((one) => ({
      word: activityWord(one),
      look: activityLook(one),
      count: totals[one],
      link: `/jobs?activity=${one}`,
    })),
  ];
  return (
    <ul className="grid grid-cols-[repeat(auto-fit,minmax(136px,1fr))] gap-3">
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
