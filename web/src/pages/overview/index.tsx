import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense } from "react";
import { ask } from "../../api/client";
import { Ago } from "../../ui/Ago";
import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";
import { useSession } from "../../use/useSession";
import { Loaded } from "../Loaded";
import { AttentionList } from "./AttentionList";
import { isQuiet, type Overview, useOverview } from "./overview";
import { QueueTable } from "./QueueTable";
import { RecipeTable } from "./RecipeTable";
import { ThroughputPanel } from "./ThroughputPanel";
import { Totals } from "./Totals";

// Seen once in the life of an installation.
const FirstRun = lazy(() => import("./FirstRun"));

export default function OverviewPage() {
  const overview = useOverview();
  const { isAdmin } = useSession();
  const isAsking = overview.data !== undefined && isQuiet(overview.data);
  // A quiet hour is not the same as no job ever: only the latter gets the page of the first day.
  const ever = useQuery({
    queryKey: ["jobs", "any", isAdmin],
    queryFn: ({ signal }) =>
      ask<{ items: readonly unknown[] }>(`/jobs?limit=1${isAdmin ? "&caller=*" : ""}`, { signal }),
    enabled: isAsking,
    refetchInterval: isAsking ? 5_000 : false,
  });
  return (
    <Page
      title="Overview"
      lead={
        overview.data && (
          <span className="text-[12px]">
            as of <Ago at={overview.data.as_of} />
          </span>
        )
      }
    >
      <Loaded query={overview} skeleton={<Outline />}>
        {(data) => {
          if (isAsking && ever.data === undefined && ever.error === null) return <Outline />;
          if (isAsking && ever.data?.items.length === 0)
            return (
              <Suspense>
                <FirstRun />
              </Suspense>
            );
          return <Panels overview={data} />;
        }}
      </Loaded>
    </Page>
  );
}

function Panels({ overview }: { readonly overview: Overview }) {
  return (
    <div className="flex flex-col gap-3 px-4 pb-6">
      <AttentionList items={overview.attention} />
      <Totals overview={overview} />
      <div className="grid gap-3 lg:grid-cols-5">
        <ThroughputPanel throughput={overview.throughput} className="flex flex-col lg:col-span-3" />
        <QueueTable queues={overview.queues} className="lg:col-span-2" />
      </div>
      <RecipeTable recipes={overview.recipes} />
    </div>
  );
}

/** The page's own shape, so that nothing jumps when the figures come. */
function Outline() {
  return (
    <div className="flex flex-col gap-3 px-4 pb-6">
      <div className="rounded-xl border border-line bg-panel py-2">
        <Skeleton rows={2} />
      </div>
      <div className="grid gap-3 lg:grid-cols-5">
        <div className="h-[226px] rounded-xl border border-line bg-panel lg:col-span-3" />
        <div className="rounded-xl border border-line bg-panel py-2 lg:col-span-2">
          <Skeleton rows={4} />
        </div>
      </div>
      <div className="rounded-xl border border-line bg-panel py-2">
        <Skeleton rows={4} />
      </div>
    </div>
  );
}
