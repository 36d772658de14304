import { useQuery, useQueryClient } from "@tanstack/react-query";
import { KeyRound, Lock, Plus } from "lucide-react";
import { useState } from "react";
import { Problem } from "../../api/client";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Panel } from "../../ui/Panel";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { useSession } from "../../use/useSession";
import { KeyTable } from "./KeyTable";
import { KEYS, listKeys } from "./keys";
import { NewKeyDialog } from "./NewKeyDialog";

export function KeysPanel() {
  const { isAdmin } = useSession();
  const queries = useQueryClient();
  const [isMaking, setMaking] = useState(false);
  const [hasEnded, setHasEnded] = useState(false);
  const keys = useQuery({ queryKey: KEYS, queryFn: listKeys, enabled: isAdmin });
  const refresh = (): Promise<void> => queries.invalidateQueries({ queryKey: KEYS });
  const live = keys.data?.filter((key) => key.is_live) ?? [];
  const ended = (keys.data?.length ?? 0) - live.length;

  const body = () => {
    if (!isAdmin) {
      return <Empty icon={Lock} title="API keys are for admins" line="Ask an admin to make or revoke a key for you." />;
    }
    if (isForeign(keys.error)) {
      return (
        <Empty
          icon={KeyRound}
          title="API keys are managed elsewhere"
          line="This installation uses a Membership service."
        />
      );
    }
    if (keys.data === undefined) {
      if (keys.error === null) return <Skeleton rows={3} label="Loading keys" />;
      return (
        <div className="p-4">
          <ProblemView problem={keys.error} onRetry={() => keys.refetch()} />
        </div>
      );
    }
    if (live.length === 0 && !hasEnded) {
      return (
        <Empty
          icon={KeyRound}
          title="There are no API keys"
          line="Each program that submits jobs over HTTP needs a key."
          command="windlass keys create --caller indexer"
        />
      );
    }
    return <KeyTable keys={hasEnded ? keys.data : live} onRevoked={refresh} />;
  };

  return (
    <Panel
      title="API keys"
      actions={
        isAdmin && !isForeign(keys.error) ? (
          <>
            {ended > 0 && (
              <Button variant="ghost" aria-pressed={hasEnded} onClick={() => setHasEnded(!hasEnded)}>
                {hasEnded ? "Hide ended" : `Show ended (${ended})`}
              </Button>
            )}
            <Button variant="primary" icon={<Plus size={13} aria-hidden="true" />} onClick={() => setMaking(true)}>
              New key
            </Button>
          </>
        ) : undefined
      }
    >
      {body()}
      {isMaking && <NewKeyDialog onMade={refresh} onClose={() => setMaking(false)} />}
    </Panel>
  );
}

/** With a Membership service the keys are not this server's, and it says that there are none. */
function isForeign(error: Error | null): boolean {
  return error instanceof Problem && error.body.status === 404;
}
