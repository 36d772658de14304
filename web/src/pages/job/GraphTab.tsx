import { lazy, Suspense, useCallback, useRef } from "react";
import { GraphView } from "../../graph/GraphView";
import type { StepNo } from "../../graph/types";
import { isOver } from "../../state";
import { useSession } from "../../use/useSession";
import type { TabProps } from "./JobView";
import { loadSteps } from "./stepLoader";
import { useJob, useStructure } from "./useJobLive";

const KillWorker = lazy(() => import("./KillWorker"));
const UndoPanel = lazy(() => import("./UndoPanel"));

export function GraphTab({ id, live, selected, onSelect }: TabProps) {
  const structure = useStructure(live);
  const job = useJob(live);
  const { demo, can } = useSession();
  const may = can("jobs:write") ? undefined : "Your key may only read jobs";
  const asked = useRef(new Set<StepNo>());
  const onOpenFan = useCallback(
    (no: StepNo) => {
      const step = live.graph.get(no);
      // A fan-out that grows is asked about again for each size: what was told already is not.
      if (step === undefined || asked.current.has(no)) return;
      asked.current.add(no);
      loadSteps(id, live, step.name, new AbortController().signal).catch(() => asked.current.delete(no));
    },
    [id, live],
  );
  return (
    <div className="flex h-full min-h-0 flex-col">
      <div className="flex min-h-0 flex-1">
        <div className="min-w-0 flex-1">
          <GraphView
            structure={structure}
            store={live.graph}
            selected={selected}
            onSelect={onSelect}
            onOpenFan={onOpenFan}
          />
        </div>
        {(job.effects !== "none" || (isOver(job.status) && job.status !== "COMPLETED")) && (
          <Suspense>
            <UndoPanel id={id} why={may} />
          </Suspense>
        )}
      </div>
      {demo !== null && (
        <Suspense>
          <KillWorker live={live} demo={demo} />
        </Suspense>
      )}
    </div>
  );
}
