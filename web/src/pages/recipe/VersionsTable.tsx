import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { Loaded } from "../Loaded";
import { type RecipeSummary, useVersions } from "../recipes/recipes";
import type { RecipeDocument } from "./plan";
import { VersionDiff } from "./VersionDiff";

interface VersionsTableProps {
  readonly recipe: RecipeDocument;
  readonly onShow: (version: number) => void;
}

export default function VersionsTable({ recipe, onShow }: VersionsTableProps) {
  const { name, plan } = recipe;
  const versions = useVersions(name);
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
                <Tr key={one.version} isSelected={one.plan === plan}>
                  <Td className="whitespace-nowrap">
                    <button
                      type="button"
                      className="cursor-pointer font-medium hover:text-accent hover:underline"
                      onClick={() => onShow(i === 0 ? 0 : one.version)}
                    >
                      v{one.version}
                    </button>
                    <span className="ml-2 text-dim">
                      {[i === 0 ? "newest" : "", one.plan === plan ? "shown" : ""].filter(Boolean).join(", ")}
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
          <Since recipe={recipe} versions={all} />
        </>
      )}
    </Loaded>
  );
}

/** What the version that is shown changed, if there was one before it. */
function Since({ recipe, versions }: { readonly recipe: RecipeDocument; readonly versions: readonly RecipeSummary[] }) {
  const at = versions.findIndex((one) => one.plan === recipe.plan);
  const before = at < 0 ? undefined : versions[at + 1];
  return before === undefined ? null : <VersionDiff key={before.version} recipe={recipe} before={before.version} />;
}
