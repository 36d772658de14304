import { Plug } from "lucide-react";
import { Copy } from "../../ui/Copy";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { useSearch } from "../../use/useSearch";
import { Loaded } from "../Loaded";
import { BudgetTable } from "./BudgetTable";
import { ProviderCard } from "./ProviderCard";
import { useBudgets, useProviders } from "./providers";

const SNIPPET = `# providers.yaml
providers:
  studio:
    adapter: replicate
    credential_env: REPLICATE_API_TOKEN
    concurrency: 4`;

const FIRST = { provider: "" };

export default function ProvidersPage() {
  const providers = useProviders();
  const [search] = useSearch(FIRST);
  const budgets = useBudgets();
  return (
    <Page title="Providers" lead={providers.data && <span className="tabular-nums">{providers.data.length}</span>}>
      <Loaded query={providers} rows={6}>
        {(items) => (
          <div className="flex flex-col gap-4 px-4 pb-6">
            {items.length === 0 ? (
              <NoProviders />
            ) : (
              <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,340px),1fr))] items-start gap-3">
                {items.map((provider) => (
                  <ProviderCard key={provider.name} provider={provider} isMarked={provider.name === search.provider} />
                ))}
              </div>
            )}
            {budgets.data !== undefined && budgets.data.length > 0 && <BudgetTable budgets={budgets.data} />}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function NoProviders() {
  return (
    <Empty
      icon={Plug}
      title="No providers"
      line="Providers are external services that do a step's work. Declare one in a file and set WINDLASS_PROVIDERS of the workers to its path."
      action={
        <div className="relative max-w-full rounded-lg border border-line bg-field text-left">
          <div className="absolute top-1 right-1">
            <Copy text={SNIPPET} label="Copy the snippet" />
          </div>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key */}
          <pre tabIndex={0} className="overflow-x-auto p-3 pr-10 font-mono text-[12px] leading-[1.55]">
            {SNIPPET}
          </pre>
        </div>
      }
    />
  );
}
