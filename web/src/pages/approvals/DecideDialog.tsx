import { useQueryClient } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { Dialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { ProblemView } from "../../ui/ProblemView";
import { TextArea } from "../../ui/TextArea";
import { toast } from "../../ui/toast";
import { APPROVALS_KEY } from "../../use/useToDecide";
import { type Approval, approvedBy, type Choice, decide, titleOf, wordOf } from "./approvals";

interface DecideDialogProps {
  readonly approval: Approval;
  readonly choice: Choice;
  readonly onDone: () => void;
  readonly onClose: () => void;
}

const REASON_MAX = 2_000;

/** A vote and its reason: a rejection needs one, because the requester must know what to change. */
export function DecideDialog({ approval, choice, onDone, onClose }: DecideDialogProps) {
  const queries = useQueryClient();
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const isRejection = choice === "reject";
  const lacking = isRejection && reason.trim() === "" ? "Give a reason first" : undefined;

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (lacking !== undefined || isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const done = await decide(approval, choice, reason.trim());
      toast(doneText(done), { kind: "good" });
      onDone();
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    } finally {
      void queries.invalidateQueries({ queryKey: APPROVALS_KEY });
    }
  };

  return (
    <Dialog
      title={isRejection ? "Reject" : "Approve"}
      lead={`${titleOf(approval)} ${effectOf(approval, choice)}`}
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Go back</Button>
          <Button type="submit" form="decide" variant={isRejection ? "danger" : "primary"} busy={isBusy} why={lacking}>
            {isRejection ? "Reject" : "Approve"}
          </Button>
        </>
      }
    >
      <form id="decide" onSubmit={submit} className="flex flex-col gap-3">
        <Field label="Reason" hint={lacking ?? "For the requester, and for the record."}>
          <TextArea
            rows={3}
            maxLength={REASON_MAX}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            onKeyDown={(event) => {
              // One keystroke opens the dialog, and one more sends it.
              if (event.key === "Enter" && !event.shiftKey) event.currentTarget.form?.requestSubmit();
              if (event.key === "Enter" && !event.shiftKey) event.preventDefault();
            }}
          />
        </Field>
        {problem !== undefined && <ProblemView problem={problem} />}
      </form>
    </Dialog>
  );
}

function effectOf(approval: Approval, choice: Choice): string {
  if (choice === "reject") return "One rejection ends it.";
  const missing = approval.need - approvedBy(approval).length - 1;
  if (missing <= 0) return "It runs at once, and the approval is used up.";
  return missing === 1 ? "One more person must approve." : `${missing} more people must approve.`;
}

function doneText(done: Approval): string {
  if (done.state !== "PENDING") return `${wordOf(done.state)}: ${titleOf(done)}`;
  return `Counted: ${approvedBy(done).length} of ${done.need} have approved`;
}
