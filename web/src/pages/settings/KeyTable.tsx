import { useState } from "react";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Confirm } from "../../ui/Confirm";
import { StatePill } from "../../ui/StatePill";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { toast } from "../../ui/toast";
import { endOf, type Key, revokeKey } from "./keys";
import { Scopes } from "./Scopes";

interface KeyTableProps {
  readonly keys: readonly Key[];
  readonly onRevoked: () => Promise<void>;
}

export function KeyTable({ keys, onRevoked }: KeyTableProps) {
  const [asked, setAsked] = useState<Key>();
  const revoke = async (key: Key): Promise<void> => {
    await revokeKey(key.id);
    toast(`The key “${key.name}” is revoked.`, { kind: "good" });
    await onRevoked();
  };
  return (
    <>
      <Table aria-label="API keys">
        <thead>
          <tr>
            <Th>Name</Th>
            <Th>Caller</Th>
            <Th>Id</Th>
            <Th>May</Th>
            <Th>Made</Th>
            <Th>Last used</Th>
            <Th>Ends</Th>
            <Th>
              <span className="sr-only">Actions</span>
            </Th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <Tr key={key.id}>
              <Td className="max-w-56 truncate font-medium">{key.name}</Td>
              <Td className="max-w-40 truncate">{key.caller}</Td>
              <Td className="font-mono text-[12px] text-dim">{key.id}</Td>
              <Td>
                <Scopes scopes={key.scopes} />
              </Td>
              <Td>
                <Ago at={key.created_at} />
              </Td>
              <Td>
                {key.last_used_at === null ? <span className="text-dim">never</span> : <Ago at={key.last_used_at} />}
              </Td>
              <Td>
                <Ends item={key} />
              </Td>
              <Td className="text-right">
                {key.is_live && (
                  <Button variant="danger" size="small" onClick={() => setAsked(key)}>
                    Revoke
                  </Button>
                )}
              </Td>
            </Tr>
          ))}
        </tbody>
      </Table>
      {asked !== undefined && (
        <Confirm
          title={`Revoke “${asked.name}”?`}
          effect={
            <>
              Whatever uses this key of <b className="text-fg">{asked.caller}</b> is refused from now on, its streams
              and sessions end, and it cannot be brought back. Jobs go on.
            </>
          }
          action="Revoke the key"
          onConfirm={() => revoke(asked)}
          onClose={() => setAsked(undefined)}
        />
      )}
    </>
  );
}

function Ends({ item }: { readonly item: Key }) {
  const end = endOf(item);
  if (end === "revoked") return <StatePill look="cancelled" word="Revoked" />;
  if (end === "expired") return <StatePill look="skipped" word="Expired" />;
  return item.expires_at === null ? <span className="text-dim">never</span> : <Ago at={item.expires_at} />;
}
