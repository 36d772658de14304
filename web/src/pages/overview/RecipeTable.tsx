import { Link } from "wouter";
import { color } from "../../state";
import { Panel } from "../../ui/Panel";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { lasted } from "../../ui/time";
import { percentText, type RecipeState, successOf } from "./overview";
import { SuccessBar } from "./SuccessBar";

/** How each recipe fares lately: how many of its jobs succeed, and how long they take. */
export function RecipeTable({ recipes }: { readonly recipes: readonly RecipeState[] }) {
  const slowest = Math.max(0, ...recipes.map((one) => one.p95_s ?? 0));
  return (
    <Panel title="Recipes" lead="last hour">
      {recipes.length === 0 ? (
        <p className="px-4 py-6 text-center text-dim">No job has ended in the last hour.</p>
      ) : (
        <Table aria-label="Recipes">
          <thead>
            <tr>
              <Th>Recipe</Th>
              <Th className="text-right">Completed</Th>
              <Th className="text-right">Failed</Th>
              <Th>Success</Th>
              <Th className="text-right">p50</Th>
              <Th className="text-right">p95</Th>
              <Th className="relative hidden w-1/4 md:table-cell">
                <span className="sr-only">p50 and p95 as a bar</span>
              </Th>
            </tr>
          </thead>
          <tbody>
            {recipes.map((one) => (
              <Tr key={one.recipe}>
                <Td className="max-w-52 truncate">
                  <Link
                    href={`/recipes/${encodeURIComponent(one.recipe)}`}
                    className="font-medium hover:text-accent hover:underline"
                  >
                    {one.recipe}
                  </Link>
                </Td>
                <Td className="text-right tabular-nums">{one.completed.toLocaleString("en")}</Td>
                <Td className={`text-right tabular-nums ${one.failed > 0 ? "text-danger" : "text-dim"}`}>
                  {one.failed.toLocaleString("en")}
                </Td>
                <Td>
                  <span className="flex items-center gap-2">
                    <SuccessBar share={successOf(one)} />
                    <span className="tabular-nums">{percentText(successOf(one))}</span>
                  </span>
                </Td>
                <Td className="whitespace-nowrap text-right tabular-nums">{timeText(one.p50_s)}</Td>
                <Td className="whitespace-nowrap text-right tabular-nums">{timeText(one.p95_s)}</Td>
                <Td className="hidden md:table-cell">
                  <Span p50={one.p50_s} p95={one.p95_s} most={slowest} />
                </Td>
              </Tr>
            ))}
          </tbody>
        </Table>
      )}
    </Panel>
  );
}

function timeText(seconds: number | null): string {
  return seconds === null ? "–" : lasted(seconds * 1_000);
}

/** The median as a strong bar in the weak one of the slowest twentieth, all recipes on one scale. */
function Span({ p50, p95, most }: { readonly p50: number | null; readonly p95: number | null; readonly most: number }) {
  if (p95 === null || most === 0) return null;
  const bar = (seconds: number, opacity: number): React.CSSProperties => ({
    width: `${Math.max(1.5, (100 * seconds) / most)}%`,
    background: color("running"),
    opacity,
  });
  return (
    <span aria-hidden="true" className="relative block h-1.5 w-full">
      <span className="absolute inset-y-0 left-0 rounded-full" style={bar(p95, 0.3)} />
      {p50 !== null && <span className="absolute inset-y-0 left-0 rounded-full" style={bar(p50, 1)} />}
    </span>
  );
}
