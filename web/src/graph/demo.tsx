/**
 * The graph by itself, to look at and to measure: `demo.html?steps=1000&job=layered&theme=light&rate=200`. Not part of
 * the console.
 */
import { StrictMode, useCallback, useEffect, useMemo, useState } from "react";
import { createRoot } from "react-dom/client";
import "../index.css";
import { layeredJob, recipeJob, runJob } from "./demoJobs";
import { GraphView } from "./GraphView";
import { createGraphStore } from "./store";
import type { StepNo } from "./types";

const query = new URLSearchParams(location.search);
const steps = Number(query.get("steps") ?? 40);
document.documentElement.classList.toggle("dark", query.get("theme") !== "light");

function Demo() {
  const [structure] = useState(() => (query.get("job") === "layered" ? layeredJob(steps) : recipeJob(steps)));
  const store = useMemo(() => createGraphStore(structure.nodes), [structure]);
  const [selected, setSelected] = useState<StepNo | null>(null);
  useEffect(() => runJob(structure, store, Number(query.get("rate") ?? 20)), [structure, store]);
  const nothing = useCallback(() => {}, []);
  return (
    <GraphView
      structure={structure}
      store={store}
      selected={selected}
      onSelect={setSelected}
      onOpenFan={nothing}
      planned={query.has("plan")}
    />
  );
}

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Demo />
    </StrictMode>,
  );
}
