import type { Look } from "../state";
import type { GraphStore } from "./store";
import type { Direction, GraphNode, Structure } from "./types";

/** Colours that stand out on a light page, where most Mermaid is read. */
const FILL: Partial<Record<Look, string>> = {
  running: "fill:#dbeafe,stroke:#0a57a8",
  retrying: "fill:#fdf0d8,stroke:#824c00",
  waiting: "fill:#efe4fb,stroke:#6d35b3",
  succeeded: "fill:#ddf3e6,stroke:#0f6639",
  failed: "fill:#fde2e4,stroke:#b01a2b",
};

/** The graph as Mermaid text, fan-outs folded: it goes into an issue or a wiki as it is. */
export function mermaidOf(structure: Structure, store: GraphStore, direction: Direction): string {
  const shown = structure.nodes.filter((node) => node.parent === undefined);
  const known = new Set(shown.map((node) => node.id));
  const lines = [`flowchart ${direction === "right" ? "LR" : "TD"}`];
  for (const node of shown) lines.push(`  s${node.id}${boxOf(store.get(node.id) ?? node)}`);
  for (const [from, to] of structure.edges) {
    if (known.has(from) && known.has(to)) lines.push(`  s${from} --> s${to}`);
  }
  for (const [look, style] of Object.entries(FILL)) {
    const ids = shown.filter((node) => (store.get(node.id) ?? node).look === look).map((node) => `s${node.id}`);
    if (ids.length > 0) lines.push(`  classDef ${look} ${style}`, `  class ${ids.join(",")} ${look}`);
  }
  return `${lines.join("\n")}\n`;
}

function boxOf(node: GraphNode): string {
  const many = node.fan?.total;
  const text = quoted(many == null ? node.label : `${node.label} ×${many}`);
  return node.fan === undefined ? `["${text}"]` : `[["${text}"]]`;
}

/** Mermaid takes any text between quotes but a quote, and reads `#` as the start of a code. */
function quoted(text: string): string {
  return text.replaceAll("#", "#35;").replaceAll('"', "#quot;").replaceAll("<", "#lt;").replaceAll("\n", " ");
}
