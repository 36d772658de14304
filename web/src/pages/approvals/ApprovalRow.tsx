import { Link } from "wouter";
import { StatePill } from "../../ui/StatePill";
import { type Approval, approvedBy, lookOf, titleOf, wordOf } from "./approvals";
import { TimeLeft } from "./TimeLeft";

interface ApprovalRowProps {
  readonly approval: Approval;
  readonly isOpen: boolean;
}

export function ApprovalRow({ approval, isOpen }: ApprovalRowProps) {
  const given = approvedBy(approval).length;
  return (
    <li className="border-line/70 border-b last:border-b-0">
      <Link
        href={`/approvals/${approval.id}${location.search}`}
        aria-current={isOpen ? "true" : undefined}
        data-approval={approval.id}
        className="flex min-w-0 flex-col gap-0.5 px-4 py-2.5 outline-offset-[-2px] hover:bg-hover aria-[current=true]:bg-panel2"
      >
        <span className="flex min-w-0 items-center gap-2">
          <span className="min-w-0 flex-1 truncate font-medium">{titleOf(approval)}</span>
          <StatePill look={lookOf(approval.state)} word={wordOf(approval.state)} />
        </span>
        <span className="flex min-w-0 flex-wrap gap-x-2 text-[12px] text-dim">
          <span className="min-w-0 truncate">
            {approval.recipe} for {approval.requester}
          </span>
          {approval.need > 1 && (
            <span className="tabular-nums">
              {given} of {approval.need}
            </span>
          )}
          <TimeLeft of={approval} />
        </span>
      </Link>
    </li>
  );
}
