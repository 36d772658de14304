import { lazy, Suspense, useCallback, useEffect, useRef } from "react";
import type { StepNo } from "../../graph/types";
import { isOver, shownJob } from "../../state";
import { Skeleton } from "../../ui/Skeleton";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useKeys } from "../../use/useKeys";
import { useSearch } from "../../use/useSearch";
import { useTitle } from "../../use/useTitle";
import { Announcer } from "./Announcer";
import { ActsContext, useActs } from "./acts";
import { Banner } from "./Banner";
import { GraphTab } from "./GraphTab";
import { Header } from "./Header";
import type { JobLive } from "./jobLive";
import { failedStep } from "./steps";
import { useJob } from "./useJobLive";

const Inspector = lazy(() => import("./Inspector"));
const TimelineTab = lazy(() => import("./TimelineTab"));
const StepsTab = lazy(() => import("./StepsTab"));
const EventsTab = lazy(() => import("./EventsTab"));
const DataTab = lazy(() => import("./DataTab"));

export const TABS = [
  { id: "graph", label: "Graph" },
  { id: "timeline", label: "Timeline" },
  { id: "steps", label: "Steps" },
  { id: "events", label: "Events" },
  { id: "data", label: "Input / Output" },
] as const;
export type TabId = (typeof TABS)[number]["id"];
const FIRST = { tab: "graph", step: -1 };

export interface TabProps {
  readonly id: string;
  readonly live: JobLive;
  readonly selected: StepNo | null;
  readonly onSelect: (no: StepNo | null) => void;
}

export function JobView({ id, live }: { readonly id: string; readonly live: JobLive }) {
  const job = useJob(live);
  const [search, setSearch] = useSearch(FIRST);
  const tab = TABS.find((one) => one.id === search.tab)?.id ?? "graph";
  const selected = search.step >= 0 && live.graph.get(search.step) !== undefined ? search.step : null;
  const acts = useActs(id, live);
  useTitle(`${job.recipe} ${shownJob(job).word.toLowerCase()}`);

  const onSelect = useCallback((no: StepNo | null) => setSearch({ step: no ?? -1 }), [setSearch]);
  const show = useCallback((next: TabId) => setSearch({ tab: next }), [setSearch]);
  useOpenAtFailure(live, search.step, onSelect);
  useFocusBack(selected);
  useKeys({
    ".": () => document.querySelector<HTMLElement>("[data-acts] button")?.click(),
    r: acts.retry.why === undefined ? acts.retry.run : undefined,
    c: acts.cancel.why === undefined ? acts.cancel.run : undefined,
    u: acts.copyLink,
    ...Object.fromEntries(TABS.map((one, i) => [String(i + 1), () => show(one.id)])),
    Escape: selected === null ? undefined : () => onSelect(null),
  });
  const props: TabProps = { id, live, selected, onSelect };
  return (
    <ActsContext value={acts}>
      <div className="flex h-full min-h-0 flex-col">
        <Header id={id} live={live} />
        <Banner id={id} live={live} selected={selected} onSelect={onSelect} />
        <Tabs value={tab} onChange={show} tabs={TABS} label="Views of the job" />
        <div className="flex min-h-0 flex-1">
          <TabPanel id={tab} className="relative min-h-0 min-w-0 flex-1">
            <Suspense fallback={<Skeleton rows={8} />}>
              {tab === "graph" && <GraphTab {...props} />}
              {tab === "timeline" && <TimelineTab {...props} />}
              {tab === "steps" && <StepsTab {...props} />}
              {tab === "events" && <EventsTab {...props} />}
              {tab === "data" && <DataTab {...props} />}
            </Suspense>
          </TabPanel>
          {selected !== null && (
            <Suspense>
              <Inspector key={selected} {...props} no={selected} />
            </Suspense>
          )}
        </div>
        <Announcer live={live} />
        {acts.dialog}
      </div>
    </ActsContext>
  );
}

/** What had the focus in the inspector goes away with it: the keys must not be lost with that. */
function useFocusBack(selected: StepNo | null): void {
  useEffect(() => {
    if (selected === null && document.activeElement === document.body) document.getElementById("main")?.focus();
  }, [selected]);
}

/** A failed job opens on its failed step, because that step says why. */
function useOpenAtFailure(live: JobLive, step: number, onSelect: (no: StepNo) => void): void {
  const isDone = useRef(false);
  useEffect(() => {
    if (isDone.current) return;
    isDone.current = true;
    // On a narrow screen the step would lie over the page, and the reason stands on top of that anyway.
    if (step >= 0 || !isOver(live.job().status) || matchMedia("(max-width: 767px)").matches) return;
    const failed = failedStep(live);
    if (failed !== undefined) onSelect(failed);
  }, [live, step, onSelect]);
}
