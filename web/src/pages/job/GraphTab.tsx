import { lazy, Suspense, useCallback, useRef } from "react";
import { GraphView } from "../../graph/GraphView";
import type { StepNo } from "../../graph/types";
import { useSession } from "../../use/useSession";
import type { TabProps } from "./JobView";
import { loadSteps } from "./stepLoader";
import { useStructure } from "./useJobLive";

const KillWorker = lazy(() => import("./KillWorker"));

export function GraphTab({ id, live, selected, onSelect }: TabProps) {
  const structure = useStructure(live);
  const { demo } = useSession();
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
      <div className="min-h-0 flex-1">
        <GraphView
          structure={structure}
          store={live.graph}
          selected={selected}
          onSelect={onSelect}
          onOpenFan={onOpenFan}
        />
      </div>
      {demo !== null && (
        <Suspense>
          <KillWorker live={live} demo={demo} />
        </Suspense>
      )}
    </div>
  );
}
