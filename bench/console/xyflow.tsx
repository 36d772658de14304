/**
 * Draws the same job with @xyflow/react, in its fastest configuration: memoised nodes, one subscription per node, fixed sizes
 * and handles, only visible elements, nothing draggable. The positions come from the console's layout.
 */
import { Handle, type Node, type NodeProps, Position, ReactFlow } from "@xyflow/react";
import "@xyflow/react/dist/style.css";
import { memo, useEffect, useState, useSyncExternalStore } from "react";
import { createRoot } from "react-dom/client";
import { layeredJob, runJob } from "../../web/src/graph/demoJobs";
import { layered } from "../../web/src/graph/layered";
import { createGraphStore, type GraphStore } from "../../web/src/graph/store";

const query = new URLSearchParams(location.search);
const WIDTH = 180;
const HEIGHT = 44;
const COLORS: Record<string, string> = {
  running: "#56b0ff",
  succeeded: "#4fd08a",
  failed: "#ff7b85",
  retrying: "#f2b04c",
};

type Card = Node<{ store: GraphStore; id: number; label: string }, "card">;

const CardView = memo(function CardView({ data }: NodeProps<Card>) {
  const step = useSyncExternalStore(
    (wake) => data.store.subscribe(data.id, wake),
    () => data.store.get(data.id),
  );
  return (
    <div
      style={{
        width: WIDTH,
        height: HEIGHT,
        border: `2px solid ${COLORS[step?.look ?? ""] ?? "#8a94a8"}`,
        borderRadius: 6,
      }}
    >
      <Handle type="target" position={Position.Left} isConnectable={false} />
      {data.label} · {step?.look}
      <Handle type="source" position={Position.Right} isConnectable={false} />
    </div>
  );
});

const TYPES = { card: CardView };

function Bench() {
  const [made] = useState(() => {
    const structure = layeredJob(Number(query.get("steps") ?? 1000));
    const store = createGraphStore(structure.nodes);
    const sizes = new Float32Array(structure.nodes.flatMap(() => [WIDTH, HEIGHT]));
    const view = { width: innerWidth, height: innerHeight };
    const pairs = Int32Array.from(structure.edges.flat());
    const { x, y } = layered({ vertices: structure.nodes.length, pairs, sizes, view });
    const nodes: Card[] = structure.nodes.map((node, i) => ({
      id: String(node.id),
      type: "card",
      position: { x: x[i] ?? 0, y: y[i] ?? 0 },
      width: WIDTH,
      height: HEIGHT,
      data: { store, id: node.id, label: node.label },
    }));
    const edges = structure.edges.map(([from, to]) => ({
      id: `${from}-${to}`,
      source: String(from),
      target: String(to),
    }));
    return { structure, store, nodes, edges };
  });
  useEffect(() => runJob(made.structure, made.store, Number(query.get("rate") ?? 20)), [made]);
  return (
    <div style={{ width: "100vw", height: "100vh" }}>
      <ReactFlow
        defaultNodes={made.nodes}
        defaultEdges={made.edges}
        nodeTypes={TYPES}
        fitView
        minZoom={0.01}
        onlyRenderVisibleElements={query.has("cull")}
        nodesDraggable={false}
        nodesConnectable={false}
        elementsSelectable={false}
        proOptions={{ hideAttribution: true }}
      />
    </div>
  );
}

const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<Bench />);
