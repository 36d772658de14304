import { ListChecks, Plus } from "lucide-react";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { Button } from "../../ui/Button";
import { Menu } from "../../ui/Menu";
import { Page } from "../../ui/Page";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { usePreference } from "../../use/usePreference";
import type { Target } from "./BulkDialog";
import { type Action, canBe } from "./bulk";
import { Chips } from "./Chips";
import { ChoiceBar } from "./ChoiceBar";
import { ROW_PX } from "./columns";
import { Empties } from "./Empties";
import { FilterBar } from "./FilterBar";
import { isNone } from "./filter";
import { knownOf } from "./known";
import { List, type ListHandle } from "./List";
import { FRESH_MAX } from "./listStore";
import { News } from "./News";
import { RowActs } from "./RowActs";
import { useChoice } from "./useChoice";
import { useFilter } from "./useFilter";
import { useHold } from "./useHold";
import { useJobList } from "./useJobList";
import { useListKeys } from "./useListKeys";
import { useNarrow } from "./useNarrow";
import { useWriteRight } from "./useWriteRight";
import { Views } from "./Views";

// The first view needs no dialogs for actions.
const BulkDialog = lazy(() => import("./BulkDialog"));

interface Asked {
  readonly action: Action;
  readonly target: Target;
}

/** Every job, live: find some, look at one, act on many. */
export default function Jobs() {
  const [filter, issues, setFilter] = useFilter();
  const { list, state, ids, fresh, gone, reload } = useJobList(filter);
  const whyNot = useWriteRight();
  const [, go] = useLocation();
  const isCard = useNarrow();
  const [density] = usePreference("density");
  const handle = useRef<ListHandle>(null);
  const [at, setAt] = useState<string | null>(null);
  const [menu, setMenu] = useState<{ id: string; button: HTMLElement } | null>(null);
  const [asked, setAsked] = useState<Asked | null>(null);
  const choice = useChoice(list.store.ids);
  const hold = useHold(list.store, choice.chosen.size > 0 || menu !== null || asked !== null || at !== null);
  const openJob = (id: string): void => go(`/jobs/${id}`);
  const openMenu = (id: string, button: HTMLElement): void => setMenu({ id, button });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list, other rows
  useEffect(() => {
    choice.clear();
    setAt(null);
  }, [list.id]);
  useListKeys({ ids, at, handle, choice, onOpen: openJob, onMenu: openMenu });

  const ofChosen = (action: Action): string[] =>
    [...choice.chosen].filter((id) => {
      const job = list.store.get(id);
      return job !== undefined && canBe(action, job);
    });
  const askChosen = (action: Action): void => {
    const able = ofChosen(action);
    setAsked({ action, target: { kind: "these", ids: able, left: choice.chosen.size - able.length } });
  };
  const askAll = (action: Action): void => setAsked({ action, target: { kind: "filter", wanted: list.wanted } });
  const whyNotAll =
    whyNot ?? (isNone(filter) ? "Filter the list first: an action never applies to all jobs" : undefined);
  const refresh = (): void => {
    if (fresh >= FRESH_MAX) reload();
    else list.store.refresh();
    handle.current?.toTop();
  };
  const isEmpty = state.phase === "ready" && ids.length === 0;

  return (
    <Page
      title="Jobs"
      isFull
      lead={state.phase === "ready" && <Shown count={ids.length} hasMore={state.hasMore} />}
      actions={
        <>
          <Views filter={filter} onChange={setFilter} />
          <Menu
            label="All that match"
            {...(isCard ? { icon: <ListChecks size={15} aria-hidden="true" /> } : {})}
            items={[
              { label: "Retry all that match…", why: whyNotAll, onSelect: () => askAll("retry") },
              { label: "Cancel all that match…", why: whyNotAll, isDanger: true, onSelect: () => askAll("cancel") },
            ]}
          />
          <Button variant="primary" icon={<Plus size={13} aria-hidden="true" />} onClick={() => go("/recipes")}>
            {isCard ? "Submit" : "Submit a job"}
          </Button>
        </>
      }
    >
      <div className="flex px-4 pb-2">
        <FilterBar filter={filter} known={(recipes) => knownOf(list.store, recipes)} onChange={setFilter} />
      </div>
      <Chips filter={filter} onChange={setFilter} />
      {issues.map((issue) => (
        <p key={issue.word} role="alert" className="px-4 pb-2 text-[12px] text-danger">
          The address says <code className="font-mono">{issue.word}</code>, which is left out. {issue.message}
        </p>
      ))}
      <div className="relative flex min-h-0 flex-1 flex-col border-line border-t">
        {state.phase === "loading" && <Skeleton rows={14} label="Loading jobs" />}
        {state.problem !== null && (
          <div className="p-4">
            <ProblemView problem={state.problem} onRetry={list.retry} />
          </div>
        )}
        {isEmpty && state.problem === null && (
          <Empties
            filter={filter}
            onChange={setFilter}
            hasMore={state.hasMore}
            isReading={state.isReading}
            onMore={list.more}
            onSubmit={() => go("/recipes")}
          />
        )}
        {ids.length > 0 && (
          <>
            <News fresh={fresh} gone={gone} onRefresh={refresh} />
            <List
              key={list.id}
              handle={handle}
              list={list}
              ids={ids}
              hasMore={state.hasMore}
              isReading={state.isReading}
              rowPx={isCard ? ROW_PX.card : ROW_PX[density]}
              isCard={isCard}
              chosen={choice.chosen}
              at={at}
              onOpen={openJob}
              onChoose={choice.toggle}
              onMenu={openMenu}
              onFocusRow={setAt}
              onPoint={hold.point}
              onScrolled={hold.scroll}
            />
          </>
        )}
      </div>
      {choice.chosen.size > 0 && (
        <ChoiceBar
          count={choice.chosen.size}
          can={{ cancel: ofChosen("cancel").length, retry: ofChosen("retry").length }}
          whyNot={whyNot}
          onAct={askChosen}
          onAll={choice.chooseAll}
          onClear={choice.clear}
        />
      )}
      {menu !== null && (
        <RowActs
          id={menu.id}
          button={menu.button}
          store={list.store}
          whyNot={whyNot}
          onOpen={openJob}
          onCancel={(id) => setAsked({ action: "cancel", target: { kind: "these", ids: [id], left: 0 } })}
          onChoose={(id) => choice.toggle(id, false)}
          onClose={() => setMenu(null)}
        />
      )}
      {asked !== null && (
        <Suspense>
          <BulkDialog
            action={asked.action}
            target={asked.target}
            onClose={() => setAsked(null)}
            onDone={choice.clear}
          />
        </Suspense>
      )}
    </Page>
  );
}

function Shown({ count, hasMore }: { readonly count: number; readonly hasMore: boolean }) {
  return (
    <span className="tabular-nums">
      {count.toLocaleString("en")}
      {hasMore ? "+" : ""} shown
    </span>
  );
}
