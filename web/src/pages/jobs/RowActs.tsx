import { useLocation } from "wouter";
import { problemOf } from "../../api/client";
import { shortId } from "../../shortId";
import { copyText } from "../../ui/Copy";
import { toast } from "../../ui/toast";
import { actOn, canBe } from "./bulk";
import type { ListStore } from "./listStore";
import { RowMenu } from "./RowMenu";

interface RowActsProps {
  readonly id: string;
  readonly button: HTMLElement;
  readonly store: ListStore;
  readonly whyNot: string | undefined;
  readonly onOpen: (id: string) => void;
  readonly onCancel: (id: string) => void;
  readonly onChoose: (id: string) => void;
  readonly onClose: () => void;
}

/** What can be done with one job from the list. */
export function RowActs({ id, button, store, whyNot, onOpen, onCancel, onChoose, onClose }: RowActsProps) {
  const [, go] = useLocation();
  const job = store.get(id);
  if (job === undefined) return null;
  const retry = async (): Promise<void> => {
    try {
      const made = await actOn("retry", id, "");
      toast(`Runs again as ${shortId(made.job_id)}`, {
        kind: "good",
        action: { label: "Open", onPress: () => go(`/jobs/${made.job_id}`) },
      });
    } catch (error) {
      toast(problemOf(error).message, { kind: "bad" });
    }
  };
  return (
    <RowMenu
      label={`Actions for ${shortId(id)}`}
      at={button}
      onClose={onClose}
      acts={[
        { label: "Open", hint: "Enter", onSelect: () => onOpen(id) },
        { label: "Choose", hint: "x", onSelect: () => onChoose(id) },
        { label: "Copy the id", onSelect: () => void copyText(id) },
        {
          label: "Retry from the failed step",
          why: whyNot ?? (canBe("retry", job) ? undefined : "Only a failed job can be retried"),
          onSelect: () => void retry(),
        },
        {
          label: "Cancel…",
          isDanger: true,
          why: whyNot ?? (canBe("cancel", job) ? undefined : "It is over"),
          onSelect: () => onCancel(id),
        },
      ]}
    />
  );
}
