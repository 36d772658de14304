import { Minus, PenLine, Plus } from "lucide-react";
import { color } from "../../state";
import { Loaded } from "../Loaded";
import { type Change, diffOf } from "./diff";
import type { RecipeDocument } from "./plan";
import { useRecipe } from "./recipe";

interface VersionDiffProps {
  readonly recipe: RecipeDocument;
  /** The version before the shown version. */
  readonly before: number;
}

const MARKS = {
  added: [Plus, "succeeded"],
  removed: [Minus, "failed"],
  changed: [PenLine, "retrying"],
} as const;

/** What this version changed. */
export function VersionDiff({ recipe, before }: VersionDiffProps) {
  const other = useRecipe(recipe.name, before);
  return (
    <section aria-label={`Changes since v${before}`} className="border-line border-t">
      <h2 className="px-4 pt-3 pb-1 font-semibold">Since v{before}</h2>
      <Loaded query={other} rows={3}>
        {(older) => {
          const changes = diffOf(older, recipe);
          if (changes.length === 0) return <p className="px-4 pb-3 text-dim">Steps, inputs and output are the same.</p>;
          return (
            <ul className="pb-3">
              {changes.map((change) => (
                <Entry key={change.kind + change.what} change={change} />
              ))}
            </ul>
          );
        }}
      </Loaded>
    </section>
  );
}

function Entry({ change }: { readonly change: Change }) {
  const [Icon, look] = MARKS[change.kind];
  return (
    <li className="flex gap-2.5 px-4 py-1">
      <Icon size={13} aria-hidden="true" className="mt-[3px] shrink-0" style={{ color: color(look) }} />
      <div className="min-w-0">
        <span className="font-medium">{change.what}</span> <span className="text-dim">{change.kind}</span>
        {change.lines.map((line) => (
          <p key={line} className="break-words font-mono text-[12px] text-dim">
            {line}
          </p>
        ))}
      </div>
    </li>
  );
}
