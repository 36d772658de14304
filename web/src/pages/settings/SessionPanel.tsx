import { LogOut } from "lucide-react";
import { useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Ago } from "../../ui/Ago";
import { Button } from "../../ui/Button";
import { Panel } from "../../ui/Panel";
import { ProblemView } from "../../ui/ProblemView";
import { useSession, useSignOut } from "../../use/useSession";
import { Scopes } from "./Scopes";

export function SessionPanel() {
  const session = useSession();
  const signOut = useSignOut();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const leave = async (): Promise<void> => {
    setBusy(true);
    setProblem(undefined);
    try {
      await signOut();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };
  return (
    <Panel
      title="Session"
      actions={
        <Button busy={isBusy} icon={<LogOut size={13} aria-hidden="true" />} onClick={leave}>
          Sign out
        </Button>
      }
    >
      <dl className="grid grid-cols-2 gap-x-6 gap-y-3 px-4 py-3 sm:grid-cols-4 [&_dd]:min-w-0 [&_dd]:truncate [&_dt]:text-[12px] [&_dt]:text-dim">
        <div>
          <dt>Signed in as</dt>
          <dd className="font-medium">{session.caller}</dd>
        </div>
        <div>
          <dt>May</dt>
          <dd>
            <Scopes scopes={session.scopes} />
          </dd>
        </div>
        <div>
          <dt>Ends if unused</dt>
          <dd>
            <Ago at={session.expires_at} />
          </dd>
        </div>
        <div>
          <dt>Windlass</dt>
          <dd className="font-mono text-[12px]">{session.version}</dd>
        </div>
      </dl>
      {problem !== undefined && (
        <div className="px-4 pb-3">
          <ProblemView problem={problem} onRetry={leave} />
        </div>
      )}
    </Panel>
  );
}
