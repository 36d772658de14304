import { Table, Td, Th, Tr } from "../../ui/Table";
import type { RecipeNode } from "./plan";
import { expressionText, retryText, secondsText } from "./words";

/** The steps of the graph as a table, also for screen readers. */
export default function StepsTable({ nodes }: { readonly nodes: readonly RecipeNode[] }) {
  return (
    <Table aria-label="Steps of the recipe">
      <thead>
        <tr>
          <Th>Step</Th>
          <Th>Needs</Th>
          <Th>Condition</Th>
          <Th>Where</Th>
          <Th className="text-right">Timeout</Th>
          <Th>Retries</Th>
        </tr>
      </thead>
      <tbody>
        {nodes.map((node) => (
          <Tr key={node.step}>
            <Td className="whitespace-nowrap">
              <span className="font-medium">{node.step}</span>
              {node.kind !== "task" && <span className="ml-2 text-dim">{node.kind}</span>}
            </Td>
            <Td
              className="max-w-52 truncate text-dim"
              data-tip={node.needs.length > 1 ? node.needs.join(", ") : undefined}
            >
              {node.needs.length === 0 ? "–" : node.needs.join(", ")}
            </Td>
            <Td className="max-w-72 truncate font-mono text-[12px]">{conditionOf(node)}</Td>
            <Td className="whitespace-nowrap font-mono text-[12px]">
              {node.provider === "" ? node.queue : `at ${node.provider}`}
            </Td>
            <Td className="whitespace-nowrap text-right tabular-nums">
              {node.kind === "task" ? secondsText(node.timeout_s) : "–"}
            </Td>
            <Td className="whitespace-nowrap text-dim">{node.kind === "task" ? retryText(node) : "–"}</Td>
          </Tr>
        ))}
      </tbody>
    </Table>
  );
}

function conditionOf(node: RecipeNode): string {
  const parts = [
    node.each === null ? "" : `each of ${expressionText(node.each)}`,
    node.when === null ? "" : `if ${expressionText(node.when)}`,
  ];
  return parts.filter((part) => part !== "").join(", ");
}
