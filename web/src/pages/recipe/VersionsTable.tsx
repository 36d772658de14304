import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { Loaded } from "../Loaded";
import { useVersions } from "../recipes/recipes";

interface VersionsTableProps {
  readonly name: string;
  /** The hash of the plan that is shown. */
  readonly plan: string;
  readonly onShow: (version: number) => void;
}

export default function VersionsTable({ name, plan, onShow }: VersionsTableProps) {
  const versions = useVersions(name);
  return (
    <Loaded query={versions} rows={3}>
      {(all) => (
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
      )}
    </Loaded>
  );
}
