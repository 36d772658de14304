import { X } from "lucide-react";
import { useMemo } from "react";
import { GraphView } from "../../graph/GraphView";
import { createGraphStore } from "../../graph/store";
import { IconButton } from "../../ui/IconButton";
import { Json } from "../../ui/Json";
import { planOf, type RecipeDocument, type RecipeNode } from "./plan";
import { stepFacts } from "./words";

interface PlanViewProps {
  readonly recipe: RecipeDocument;
  /** A step's name, or "" for none. */
  readonly step: string;
  readonly onStep: (step: string) => void;
}

const openNothing = (): void => {};

/** The graph before any job: every step is a plan, and says what decides about it when it is chosen. */
export function PlanView({ recipe, step, onStep }: PlanViewProps) {
  const structure = useMemo(() => planOf(recipe), [recipe]);
  const store = useMemo(() => createGraphStore(structure.nodes), [structure]);
  const no = recipe.nodes.findIndex((node) => node.step === step);
  const chosen = recipe.nodes[no];
  return (
    <div className="relative min-h-0 flex-1">
      <GraphView
        structure={structure}
        store={store}
        planned
        selected={no < 0 ? null : no}
        onSelect={(id) => onStep(id === null ? "" : (recipe.nodes[id]?.step ?? ""))}
        onOpenFan={openNothing}
      />
      {chosen !== undefined && <StepCard node={chosen} onClose={() => onStep("")} />}
    </div>
  );
}

function StepCard({ node, onClose }: { readonly node: RecipeNode; readonly onClose: () => void }) {
  return (
    <section
      aria-label={`Step ${node.step}`}
      className="absolute inset-x-3 bottom-3 z-10 flex max-h-[60%] flex-col overflow-hidden rounded-xl border border-line2 bg-panel shadow-float sm:right-auto sm:w-96"
    >
      <header className="flex items-center gap-2 border-line border-b py-1.5 pr-1.5 pl-4">
        <h2 className="min-w-0 flex-1 truncate font-semibold">{node.step}</h2>
        <IconButton label="Close" onClick={onClose}>
          <X size={14} aria-hidden="true" />
        </IconButton>
      </header>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key */}
      <div tabIndex={0} className="min-h-0 overflow-y-auto px-4 py-2.5">
        <dl className="grid grid-cols-[auto_1fr] gap-x-4 gap-y-1">
          {stepFacts(node).map(([word, text]) => (
            <div key={word} className="contents">
              <dt className="text-dim">{word}</dt>
              <dd className="min-w-0 break-words font-mono text-[12px]">{text}</dd>
            </div>
          ))}
        </dl>
        {hasArguments(node) && (
          <div className="mt-2.5">
            <Json value={node.arguments} label="Arguments" />
          </div>
        )}
      </div>
    </section>
  );
}

function hasArguments(node: RecipeNode): boolean {
  return typeof node.arguments === "object" && node.arguments !== null && Object.keys(node.arguments).length > 0;
}
