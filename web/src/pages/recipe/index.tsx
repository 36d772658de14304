import { BookX, List } from "lucide-react";
import { lazy, Suspense, useEffect } from "react";
import { Link, useParams } from "wouter";
import { Problem } from "../../api/client";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { Select } from "../../ui/Select";
import { Skeleton } from "../../ui/Skeleton";
import { TabPanel, Tabs } from "../../ui/Tabs";
import { useSearch } from "../../use/useSearch";
import { Loaded } from "../Loaded";
import { useVersions } from "../recipes/recipes";
import { PlanView } from "./PlanView";
import type { RecipeDocument } from "./plan";
import { useRecipe } from "./recipe";
import { SubmitPanel } from "./SubmitPanel";
import { firstParagraph } from "./words";

// What stands behind the other tabs is fetched when one of them is opened.
const StepsTable = lazy(() => import("./StepsTable"));
const SchemaView = lazy(() => import("./SchemaView"));
const VersionsTable = lazy(() => import("./VersionsTable"));

const FIRST = { tab: "graph", version: 0, step: "" };
const TABS = [
  { id: "graph", label: "Graph" },
  { id: "steps", label: "Steps" },
  { id: "schema", label: "Inputs and output" },
  { id: "versions", label: "Versions" },
];

export default function RecipePage() {
  const { name = "" } = useParams<{ name: string }>();
  const [search, setSearch] = useSearch(FIRST);
  const recipe = useRecipe(name, search.version);
  const versions = useVersions(name);
  return (
    <Page
      title={name}
      isFull
      lead={
        versions.data !== undefined && (
          <Select
            aria-label="Version"
            value={String(search.version)}
            onChange={(version) => setSearch({ version: Number(version), step: "" }, "push")}
            choices={versions.data.map((one, i) => ({
              value: String(i === 0 ? 0 : one.version),
              label: i === 0 ? `v${one.version}, the newest` : `v${one.version}`,
            }))}
          />
        )
      }
      actions={
        recipe.data !== undefined && (
          <Link
            href={`/jobs?recipe=${encodeURIComponent(name)}`}
            className="flex items-center gap-1.5 text-accent hover:underline"
          >
            <List size={13} aria-hidden="true" />
            Its jobs
          </Link>
        )
      }
    >
      {isMissing(recipe.error) ? (
        <Empty
          icon={BookX}
          title="There is no such recipe"
          line={
            search.version > 0
              ? `This recipe has no version ${search.version}.`
              : "The recipe was renamed, or its worker has not started yet."
          }
          action={
            <Link
              href={search.version > 0 ? `/recipes/${encodeURIComponent(name)}` : "/recipes"}
              className="text-accent hover:underline"
            >
              {search.version > 0 ? "To its newest version" : "To all recipes"}
            </Link>
          }
        />
      ) : (
        <Loaded query={recipe} rows={6}>
          {(found) => (
            <>
              <Description text={found.description} />
              <Sides recipe={found} />
            </>
          )}
        </Loaded>
      )}
    </Page>
  );
}

function isMissing(error: unknown): boolean {
  return error instanceof Problem && error.body.status === 404;
}

/** What the author says of the recipe, as far as there is room for it. */
function Description({ text }: { readonly text: string }) {
  const first = firstParagraph(text);
  if (first === "") return null;
  return <p className="line-clamp-3 max-w-[80ch] shrink-0 px-4 pb-2.5 text-dim">{first}</p>;
}

/** The recipe at the left, its form at the right; on a narrow screen one below the other. */
function Sides({ recipe }: { readonly recipe: RecipeDocument }) {
  const [search, setSearch] = useSearch(FIRST);
  const tab = TABS.some((one) => one.id === search.tab) ? search.tab : "graph";
  useSubmitInView();
  return (
    <div className="min-h-0 flex-1 overflow-y-auto border-line border-t lg:grid lg:grid-cols-[minmax(0,1fr)_minmax(340px,400px)] lg:overflow-hidden">
      <div className="flex min-h-0 min-w-0 flex-col lg:border-line lg:border-r">
        <Tabs value={tab} onChange={(id) => setSearch({ tab: id })} tabs={TABS} label="Views of the recipe" />
        <TabPanel
          id={tab}
          className={`min-h-0 flex-1 ${tab === "graph" ? "flex h-[420px] flex-none flex-col lg:h-auto lg:flex-1" : "lg:overflow-y-auto"}`}
        >
          {tab === "graph" && <PlanView recipe={recipe} step={search.step} onStep={(step) => setSearch({ step })} />}
          <Suspense fallback={<Skeleton rows={4} />}>
            {tab === "steps" && <StepsTable nodes={recipe.nodes} />}
            {tab === "schema" && <SchemaView recipe={recipe} />}
            {tab === "versions" && (
              <VersionsTable
                recipe={recipe}
                version={search.version}
                onShow={(version) => setSearch({ version, step: "" }, "push")}
              />
            )}
          </Suspense>
        </TabPanel>
      </div>
      <div className="flex min-h-0 min-w-0 flex-col border-line border-t bg-panel lg:border-t-0">
        <SubmitPanel key={recipe.plan} recipe={recipe} version={search.version} />
      </div>
    </div>
  );
}

/** An address that asks to submit opens the form with the focus in its first field. */
function useSubmitInView(): void {
  useEffect(() => {
    if (location.hash !== "#submit") return;
    const form = document.getElementById("submit");
    form?.scrollIntoView({ block: "nearest" });
    form?.querySelector<HTMLElement>("input, textarea, select")?.focus();
  }, []);
}
