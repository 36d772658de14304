import { Link } from "wouter";
import { shortId } from "../../shortId";
import { color } from "../../state";
import { Panel } from "../../ui/Panel";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { type Budget, moneyText } from "./providers";

const SHOWN_MAX = 20;

/** What may be spent and what was: by job, recipe and caller. */
export function BudgetTable({ budgets }: { readonly budgets: readonly Budget[] }) {
  // Shared budgets come first; every job may have a budget of its own.
  const sorted = [...budgets].sort((a, b) => Number(a.scope === "job") - Number(b.scope === "job"));
  const shown = sorted.slice(0, SHOWN_MAX);
  return (
    <Panel title="Budgets" lead="a step that would not fit waits">
      <Table aria-label="Budgets">
        <thead>
          <tr>
            <Th>Of</Th>
            <Th className="w-1/4">Used</Th>
            <Th className="text-right">Spent</Th>
            <Th className="text-right">Reserved</Th>
            <Th className="text-right">Left</Th>
            <Th className="text-right">Most</Th>
          </tr>
        </thead>
        <tbody>
          {shown.map((one) => (
            <Tr key={`${one.scope} ${one.name}`}>
              <Td className="max-w-64 truncate">
                <span className="text-dim">{one.scope}</span>{" "}
                {one.scope === "job" ? (
                  <Link href={`/jobs/${one.name}`} className="font-mono text-[12px] text-accent hover:underline">
                    {shortId(one.name)}
                  </Link>
                ) : (
                  <span className="font-medium">{one.name}</span>
                )}
              </Td>
              <Td>
                <Used budget={one} />
              </Td>
              <Td className="text-right tabular-nums">{moneyText(one.spent)}</Td>
              <Td className="text-right text-dim tabular-nums">{moneyText(one.reserved)}</Td>
              <Td className="text-right tabular-nums">{moneyText(one.left)}</Td>
              <Td className="text-right tabular-nums">{moneyText(one.most)}</Td>
            </Tr>
          ))}
        </tbody>
      </Table>
      {sorted.length > shown.length && (
        <p className="border-line/70 border-t px-4 py-2 text-[12px] text-dim">
          and {(sorted.length - shown.length).toLocaleString("en")} more of single jobs
        </p>
      )}
    </Panel>
  );
}

/** Only a picture: here a float is good enough. */
function Used({ budget }: { readonly budget: Budget }) {
  const most = Number(budget.most);
  const part = (amount: string | number): string => `${most > 0 ? Math.min(100, (100 * Number(amount)) / most) : 0}%`;
  return (
    <span aria-hidden="true" className="flex h-1.5 min-w-24 overflow-hidden rounded-full bg-panel2">
      <span style={{ width: part(budget.spent), background: color("running") }} />
      <span style={{ width: part(budget.reserved), background: color("running"), opacity: 0.4 }} />
    </span>
  );
}
