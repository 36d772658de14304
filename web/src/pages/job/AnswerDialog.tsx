import type { StepNo } from "../../graph/types";
import { Dialog } from "../../ui/Dialog";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { AnswerForm } from "./AnswerForm";
import type { JobLive } from "./jobLive";
import { useStepDetail } from "./useStepDetail";

interface AnswerDialogProps {
  readonly id: string;
  readonly live: JobLive;
  readonly no: StepNo;
  readonly onClose: () => void;
}

/** One look at what is sent, before it is sent: an event is taken once. */
export default function AnswerDialog({ id, live, no, onClose }: AnswerDialogProps) {
  const { data, error, refetch } = useStepDetail(id, live, no);
  const label = live.graph.get(no)?.label ?? "The step";
  return (
    <Dialog title={`Answer ${label}`} onClose={onClose}>
      {error !== null && <ProblemView problem={error} onRetry={refetch} />}
      {data === undefined && error === null && <Skeleton rows={4} label="Loading the step" />}
      {data?.awaited != null && <AnswerForm key={no} id={id} awaited={data.awaited} onSent={onClose} />}
      {data !== undefined && data.awaited === null && (
        <p className="py-2 text-dim">The step no longer waits: the event was sent, or its time is over.</p>
      )}
    </Dialog>
  );
}
