import { BookOpen, SearchX } from "lucide-react";
import { Link } from "wouter";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Input } from "../../ui/Input";
import { Page } from "../../ui/Page";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { lasted } from "../../ui/time";
import { useSearch } from "../../use/useSearch";
import { Loaded } from "../Loaded";
import { percentText, type RecipeState, successOf, useOverview } from "../overview/overview";
import { SuccessBar } from "../overview/SuccessBar";
import { found, type RecipeSummary, useRecipes } from "./recipes";

const FIRST = { q: "" };

export default function RecipesPage() {
  const recipes = useRecipes();
  // Only to say how they fare: the list does not wait for it, and does without it if it fails.
  const overview = useOverview();
  const states = new Map(overview.data?.recipes.map((one) => [one.recipe, one]));
  const [search, setSearch] = useSearch(FIRST);
  return (
    <Page
      title="Recipes"
      lead={recipes.data && <span className="tabular-nums">{recipes.data.length}</span>}
      actions={
        <div className="w-44">
          <Input
            type="search"
            data-filter
            aria-label="Find a recipe"
            placeholder="Find a recipe"
            value={search.q}
            onChange={(event) => setSearch({ q: event.target.value })}
          />
        </div>
      }
    >
      <Loaded query={recipes} rows={8}>
        {(all) => {
          const shown = found(all, search.q);
          if (all.length === 0)
            return (
              <Empty
                icon={BookOpen}
                title="No recipes registered"
                line="A worker registers the recipes of its app when it starts."
                command="windlass worker app.py"
              />
            );
          if (shown.length === 0)
            return (
              <Empty
                icon={SearchX}
                title="No recipe matches"
                line={`None of ${all.length} names contains “${search.q}”.`}
                action={<Button onClick={() => setSearch({ q: "" })}>Show all</Button>}
              />
            );
          return <RecipeRows recipes={shown} states={states} />;
        }}
      </Loaded>
    </Page>
  );
}

interface RowsProps {
  readonly recipes: readonly RecipeSummary[];
  readonly states: ReadonlyMap<string, RecipeState>;
}

function RecipeRows({ recipes, states }: RowsProps) {
  return (
    <Table aria-label="Recipes">
      <thead>
        <tr>
          <Th>Recipe</Th>
          <Th className="hidden sm:table-cell">Version</Th>
          <Th className="hidden text-right sm:table-cell">Jobs, last hour</Th>
          <Th>Success</Th>
          <Th className="hidden text-right md:table-cell">p50</Th>
          <Th className="text-right">p95</Th>
          <Th className="hidden text-right sm:table-cell">Changed</Th>
          <Th className="relative">
            <span className="sr-only">Acts</span>
          </Th>
        </tr>
      </thead>
      <tbody>
        {recipes.map((recipe) => (
          <Row key={recipe.name} recipe={recipe} state={states.get(recipe.name)} />
        ))}
      </tbody>
    </Table>
  );
}

function Row({ recipe, state }: { readonly recipe: RecipeSummary; readonly state: RecipeState | undefined }) {
  const path = `/recipes/${encodeURIComponent(recipe.name)}`;
  const share = state === undefined ? null : successOf(state);
  return (
    <Tr>
      <Td className="max-w-40 truncate sm:max-w-64">
        <Link href={path} className="font-medium hover:text-accent hover:underline">
          {recipe.name}
        </Link>
      </Td>
      <Td className="hidden text-dim tabular-nums sm:table-cell">v{recipe.version}</Td>
      <Td className="hidden text-right tabular-nums sm:table-cell">
        {state === undefined ? (
          <span className="text-dim">–</span>
        ) : (
          (state.completed + state.failed).toLocaleString("en")
        )}
      </Td>
      <Td className="sm:w-40">
        {share === null ? (
          <span className="text-dim">–</span>
        ) : (
          <span className="flex items-center gap-2">
            <SuccessBar share={share} />
            <span className="whitespace-nowrap tabular-nums">{percentText(share)}</span>
          </span>
        )}
      </Td>
      <Td className="hidden whitespace-nowrap text-right tabular-nums md:table-cell">{timeText(state?.p50_s)}</Td>
      <Td className="whitespace-nowrap text-right tabular-nums">{timeText(state?.p95_s)}</Td>
      <Td className="hidden text-right text-dim sm:table-cell">
        <Ago at={recipe.created_at} />
      </Td>
      <Td className="w-0 whitespace-nowrap text-right">
        <Link
          href={`${path}#submit`}
          className="text-accent hover:underline"
          aria-label={`Submit a job of ${recipe.name}`}
        >
          Submit…
        </Link>
      </Td>
    </Tr>
  );
}

function timeText(seconds: number | null | undefined): string {
  return seconds === null || seconds === undefined ? "–" : lasted(seconds * 1_000);
}
