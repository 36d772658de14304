import { useEffect, useState } from "react";
import type { JobLive } from "./jobLive";
import { loadAttempts, loadSteps, type Progress } from "./stepLoader";

export interface Load extends Progress {
  readonly problem: unknown;
  readonly retry: () => void;
}

type What = "steps" | "attempts";
/** What was loaded for a job stays loaded: the stream tells the rest. */
const done: Record<What, WeakSet<JobLive>> = { steps: new WeakSet(), attempts: new WeakSet() };

/** Load all steps or all attempts of the job once, page by page, while it is looked at. */
export function useLoad(what: What, id: string, live: JobLive): Load {
  const [progress, setProgress] = useState<Progress>({ loaded: 0, isDone: done[what].has(live) });
  const [problem, setProblem] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another try is another effect
  useEffect(() => {
    if (done[what].has(live)) return;
    const stop = new AbortController();
    setProblem(null);
    const run =
      what === "steps"
        ? loadSteps(id, live, null, stop.signal, setProgress)
        : loadAttempts(id, live, stop.signal, setProgress);
    run.then(
      () => {
        done[what].add(live);
        setProgress((before) => ({ ...before, isDone: true }));
      },
      (error: unknown) => {
        if (!stop.signal.aborted) setProblem(error);
      },
    );
    return () => stop.abort();
  }, [what, id, live, tries]);
  return { ...progress, problem, retry: () => setTries((before) => before + 1) };
}
