import { ShieldAlert, ShieldCheck } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { color } from "../../state";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { ProblemView } from "../../ui/ProblemView";
import { type Verdict, verifyChain } from "./records";

type Stage =
  | { readonly kind: "idle" }
  | { readonly kind: "going"; readonly checked: number }
  | { readonly kind: "over"; readonly verdict: Verdict }
  | { readonly kind: "failed"; readonly error: unknown };

export interface Verifying {
  readonly stage: Stage;
  readonly start: () => void;
}

export function useVerify(): Verifying {
  const [stage, setStage] = useState<Stage>({ kind: "idle" });
  const stop = useRef<AbortController>(undefined);
  useEffect(() => () => stop.current?.abort(), []);
  const start = (): void => {
    stop.current?.abort();
    const abort = new AbortController();
    stop.current = abort;
    setStage({ kind: "going", checked: 0 });
    verifyChain((checked) => setStage({ kind: "going", checked }), abort.signal).then(
      (verdict) => setStage({ kind: "over", verdict }),
      (error: unknown) => {
        if (!abort.signal.aborted) setStage({ kind: "failed", error });
      },
    );
  };
  return { stage, start };
}

export function VerifyButton({ stage, start }: Verifying) {
  const isGoing = stage.kind === "going";
  return (
    <Button busy={isGoing} icon={<ShieldCheck size={13} aria-hidden="true" />} onClick={start}>
      {isGoing && stage.checked > 0 ? `Verifying, ${stage.checked.toLocaleString("en")} so far` : "Verify the chain"}
    </Button>
  );
}

/** Whether every record is as it was written. The head may be noted elsewhere, to show it again later. */
export function VerifyResult({ stage, start }: Verifying) {
  if (stage.kind === "failed")
    return (
      <div className="px-4 pb-3">
        <ProblemView problem={stage.error} onRetry={start} />
      </div>
    );
  if (stage.kind !== "over") return null;
  const { verdict } = stage;
  const look = verdict.is_good ? "succeeded" : "failed";
  const Icon = verdict.is_good ? ShieldCheck : ShieldAlert;
  return (
    <div
      role="status"
      className="mx-4 mb-3 flex items-start gap-3 rounded-lg border px-3 py-2"
      style={{ borderColor: `color-mix(in srgb, ${color(look)} 45%, transparent)` }}
    >
      <Icon size={16} aria-hidden="true" className="mt-px shrink-0" style={{ color: color(look) }} />
      <div className="min-w-0">
        <p className="font-medium">
          {verdict.is_good
            ? `The chain holds: ${verdict.checked.toLocaleString("en")} records are unchanged.`
            : `The chain does not hold at record ${verdict.flaw_no}: ${verdict.flaw}.`}
        </p>
        {verdict.head !== null && (
          <p className="flex min-w-0 items-center gap-1 text-[12px] text-dim">
            Head <code className="truncate font-mono">{verdict.head}</code>
            <Copy text={verdict.head} label="Copy the head of the chain" />
          </p>
        )}
      </div>
    </div>
  );
}
