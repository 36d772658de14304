import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { Loaded } from "../Loaded";
import { type RecipeSummary, useVersions } from "../recipes/recipes";
import type { RecipeDocument } from "./plan";
import { VersionDiff } from "./VersionDiff";

interface VersionsTableProps {
  readonly recipe: RecipeDocument;
  /** The version that is shown; 0 is the newest. Two versions may have the same plan. */
  readonly version: number;
  readonly onShow: (version: number) => void;
}

export default function VersionsTable({ recipe, version, onShow }: VersionsTableProps) {
  const versions = useVersions(recipe.name);
  const isShown = (one: RecipeSummary, place: number): boolean => (version > 0 ? one.version === version : place === 0);
  return (
    <Loaded query={versions} rows={3}>
      {(all) => (
        <>
          <Table aria-label="Versions">
            <thead>
              <tr>
                <Th>Version</Th>
                <Th>Plan</Th>
                <Th className="text-right">Registered</Th>
              </tr>
            </thead>
            <tbody>
              {all.map((one, i) => (
                <Tr key={one.version} isSelected={isShown(one, i)}>
                  <Td className="whitespace-nowrap">
                    <button
                      type="button"
                      className="cursor-pointer font-medium hover:text-accent hover:underline"
                      onClick={() => onShow(i === 0 ? 0 : one.version)}
                    >
                      v{one.version}
                    </button>
                    <span className="ml-2 text-dim">
                      {[i === 0 ? "newest" : "", isShown(one, i) ? "shown" : ""].filter(Boolean).join(", ")}
                    </span>
                  </Td>
                  <Td className="font-mono text-[12px] text-dim">
                    <span className="flex items-center gap-1">
                      {one.plan.slice(0, 12)}
                      <Copy text={one.plan} label="Copy the plan's hash" />
                    </span>
                  </Td>
                  <Td className="text-right text-dim">
                    <Ago at={one.created_at} />
                  </Td>
                </Tr>
              ))}
            </tbody>
          </Table>
          <Since recipe={recipe} before={all[all.findIndex(isShown) + 1]} />
        </>
      )}
    </Loaded>
  );
}

/** What the version that is shown changed, if there was one before it. */
function Since({ recipe, before }: { readonly recipe: RecipeDocument; readonly before: RecipeSummary | undefined }) {
  return before === undefined ? null : <VersionDiff key={before.version} recipe={recipe} before={before.version} />;
}
