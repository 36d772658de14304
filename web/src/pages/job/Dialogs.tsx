/** The dialogs of the job's actions; loaded when the first one is opened. */
import { useLocation } from "wouter";
import { ask } from "../../api/client";
import { Confirm } from "../../ui/Confirm";
import { toast } from "../../ui/toast";
import { cancelText } from "./cancelText";
import type { JobLive } from "./jobLive";
import { RerunDialog } from "./RerunDialog";
import type { JobAccepted } from "./types";

export type Asking =
  | { readonly kind: "cancel" | "remove" }
  /** From a step's name; null is the start. */
  | { readonly kind: "rerun"; readonly from: string | null };

interface DialogsProps {
  readonly id: string;
  readonly live: JobLive;
  readonly asking: Asking;
  readonly onClose: () => void;
  readonly onMade: (made: JobAccepted, what: string) => void;
}

export default function Dialogs({ id, live, asking, onClose, onMade }: DialogsProps) {
  const [, go] = useLocation();
  if (asking.kind === "rerun") {
    return <RerunDialog id={id} live={live} from={asking.from} onClose={onClose} onMade={onMade} />;
  }
  if (asking.kind === "cancel") {
    return (
      <Confirm
        title="Cancel this job?"
        effect={cancelText(live.graph.counts())}
        needsReason
        action="Cancel the job"
        onConfirm={(reason) => ask(`/jobs/${id}/cancel`, { method: "POST", body: { reason } })}
        onClose={onClose}
      />
    );
  }
  return (
    <Confirm
      title="Delete this job?"
      effect="The job disappears from all lists. Its history is removed at the end of the retention period."
      action="Delete the job"
      onConfirm={async () => {
        await ask(`/jobs/${id}`, { method: "DELETE" });
        toast("Deleted", { kind: "good" });
        go("/jobs");
      }}
      onClose={onClose}
    />
  );
}
