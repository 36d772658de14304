import { type FormEvent, type ReactNode, useState } from "react";
import { type Problem, problemOf } from "../api/client";
import { Button } from "./Button";
import { Dialog } from "./Dialog";
import { Field } from "./Field";
import { Input } from "./Input";
import { ProblemView } from "./ProblemView";
import { TextArea } from "./TextArea";

/** Above so many, a slip of the hand is too dear: the number is typed. */
const TYPED_ABOVE = 100;

interface ConfirmProps {
  readonly title: string;
  /** The effect in numbers: "Cancels 9 jobs and 41 running steps." */
  readonly effect: ReactNode;
  readonly count?: number | undefined;
  readonly needsReason?: boolean;
  /** What the button says: "Cancel 9 jobs". */
  readonly action: string;
  /** May take its time: until it is done the button is busy, and a problem is shown here. */
  readonly onConfirm: (reason: string) => unknown;
  readonly onClose: () => void;
  readonly isHarmless?: boolean;
  readonly children?: ReactNode;
}

/** Asked before anything that cannot be taken back. Rendered means open; a good answer closes it. */
export function Confirm(props: ConfirmProps) {
  const { title, effect, count = 0, needsReason = false, action, onConfirm, onClose } = props;
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const needsCount = count > TYPED_ABOVE;
  const lacking =
    needsReason && reason.trim() === ""
      ? "Give a reason first"
      : needsCount && typed.replaceAll(/[\s,.]/g, "") !== String(count)
        ? "Type the number first"
        : undefined;

  const confirm = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (lacking !== undefined || isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      await onConfirm(reason.trim());
      onClose();
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };

  return (
    <Dialog
      title={title}
      lead={effect}
      onClose={onClose}
      footer={
        <>
          {lacking !== undefined && (
            <p id="confirm-lacks" className="mr-auto self-center text-[12px] text-dim">
              {lacking}
            </p>
          )}
          <Button onClick={onClose}>Go back</Button>
          <Button
            type="submit"
            form="confirm"
            variant={props.isHarmless ? "primary" : "danger"}
            busy={isBusy}
            why={lacking}
            aria-describedby={lacking === undefined ? undefined : "confirm-lacks"}
          >
            {action}
          </Button>
        </>
      }
    >
      <form id="confirm" onSubmit={confirm} className="flex flex-col gap-3">
        {props.children}
        {needsReason && (
          <Field label="Reason" hint="Required: it is stored in the audit">
            <TextArea rows={2} maxLength={500} value={reason} onChange={(event) => setReason(event.target.value)} />
          </Field>
        )}
        {needsCount && (
          <Field label={`Type ${count.toLocaleString("en")} to continue`}>
            <Input
              inputMode="numeric"
              autoComplete="off"
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
          </Field>
        )}
        {problem !== undefined && <ProblemView problem={problem} />}
      </form>
    </Dialog>
  );
}
