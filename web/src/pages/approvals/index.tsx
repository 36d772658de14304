import { Stamp } from "lucide-react";
import { useState } from "react";
import { useLocation, useParams } from "wouter";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { Segmented } from "../../ui/Segmented";
import { useKeys } from "../../use/useKeys";
import { useMedia } from "../../use/useMedia";
import { useSearch } from "../../use/useSearch";
import { useSession } from "../../use/useSession";
import { useLiveApprovals } from "../../use/useToDecide";
import { Loaded } from "../Loaded";
import { ApprovalRow } from "./ApprovalRow";
import { type Approval, type Choice, inOrder, useApproval, useApprovals, VIEWS, type View } from "./approvals";
import { DecideDialog } from "./DecideDialog";
import { Detail } from "./Detail";

const FIRST: { readonly view: string } = { view: "" };

/** What waits for people: a list, and beside it what exactly will run. A phone shows one of the two. */
export default function ApprovalsPage() {
  const { can } = useSession();
  const [search, setSearch] = useSearch(FIRST);
  const view = viewOf(search.view, can("approvals:decide"));
  const list = useApprovals(view);
  useLiveApprovals();
  const waiting = list.data?.items.filter((one) => one.may_decide).length ?? 0;
  return (
    <Page
      title="Approvals"
      isFull
      lead={waiting > 0 && <span className="tabular-nums">{waiting} to decide</span>}
      actions={
        <Segmented label="Which approvals" value={view} onChange={(one) => setSearch({ view: one })} choices={VIEWS} />
      }
    >
      <Loaded query={list} rows={6}>
        {(page) => <Inbox items={inOrder(page.items)} view={view} />}
      </Loaded>
    </Page>
  );
}

function Inbox({ items, view }: { readonly items: readonly Approval[]; readonly view: View }) {
  const { id } = useParams<{ id?: string }>();
  const [, go] = useLocation();
  const [asking, setAsking] = useState<Choice>();
  const isWide = useMedia("(width >= 64rem)");
  const chosen = id ?? (isWide ? items[0]?.id : undefined);
  const one = useApproval(chosen);
  const shown = one.data ?? items.find((item) => item.id === chosen);

  const walk = (by: number): void => {
    const at = items.findIndex((item) => item.id === chosen);
    const next = items[Math.min(items.length - 1, Math.max(0, at + by))];
    if (next !== undefined) go(`/approvals/${next.id}${location.search}`);
  };
  const begin = (choice: Choice): void => {
    if (shown?.may_decide) setAsking(choice);
  };
  const afterwards = (): void => {
    const next = items.find((item) => item.id !== chosen && item.may_decide);
    go(next === undefined || !isWide ? `/approvals${location.search}` : `/approvals/${next.id}${location.search}`);
  };
  useKeys({ j: () => walk(1), k: () => walk(-1), a: () => begin("approve"), r: () => begin("reject") });

  if (items.length === 0 && id === undefined) return <Nothing view={view} />;
  return (
    <div className="flex min-h-0 flex-1">
      {(isWide || id === undefined) && (
        <div className="min-h-0 w-full shrink-0 overflow-y-auto px-4 pb-6 lg:w-96 lg:pr-0">
          <ul aria-label="Approvals" className="overflow-hidden rounded-xl border border-line bg-panel">
            {items.map((item) => (
              <ApprovalRow key={item.id} approval={item} isOpen={item.id === chosen} />
            ))}
          </ul>
        </div>
      )}
      {chosen !== undefined && (
        <div className="min-h-0 min-w-0 flex-1 overflow-y-auto">
          {shown === undefined ? (
            <Loaded query={one} rows={6}>
              {() => null}
            </Loaded>
          ) : (
            <Detail approval={shown} onDecide={begin} />
          )}
        </div>
      )}
      {asking !== undefined && shown !== undefined && (
        <DecideDialog approval={shown} choice={asking} onDone={afterwards} onClose={() => setAsking(undefined)} />
      )}
    </div>
  );
}

function Nothing({ view }: { readonly view: View }) {
  const [, setSearch] = useSearch(FIRST);
  const { can } = useSession();
  if (view !== "decide")
    return (
      <Empty
        icon={Stamp}
        title="No approvals"
        line="A recipe asks people with wl.approve(), and a rule of the policy with the decision require_approval."
      />
    );
  return (
    <Empty
      icon={Stamp}
      title={can("approvals:decide") ? "Nothing waits for you" : "Your key may not decide"}
      line={
        can("approvals:decide")
          ? "What other callers request and you may decide is listed here. You cannot decide on your own requests."
          : "A key with the scope approvals:decide lists here what waits for its caller."
      }
      command='wl.approve("Publish?", who=["lead"], expires="2d")'
      action={<Button onClick={() => setSearch({ view: "all" })}>Show all approvals</Button>}
    />
  );
}

function viewOf(text: string, mayDecide: boolean): View {
  const known = VIEWS.find((one) => one.value === text)?.value;
  return known ?? (mayDecide ? "decide" : "mine");
}
