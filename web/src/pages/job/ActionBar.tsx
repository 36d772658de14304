import { Ban, Braces, Link2, Pause, Play, RotateCcw, SquareTerminal, Trash2, Undo2, Workflow } from "lucide-react";
import { isOver } from "../../state";
import { Button } from "../../ui/Button";
import { Menu } from "../../ui/Menu";
import { useActsHere } from "./acts";
import type { JobLive } from "./jobLive";
import { useJob } from "./useJobLive";

const SIZE = { size: 13, "aria-hidden": true } as const;

/** The act that is most likely wanted now, and all of them in a menu. */
export function ActionBar({ live }: { readonly live: JobLive }) {
  const job = useJob(live);
  const acts = useActsHere();
  const isOpen = !isOver(job.status);
  return (
    <div className="flex flex-wrap items-center gap-2" data-acts>
      <Menu
        label="Actions"
        items={[
          {
            label: "Retry from the failed step",
            icon: <RotateCcw {...SIZE} />,
            hint: "r",
            why: acts.retry.why,
            onSelect: acts.retry.run,
          },
          { label: "Run again…", icon: <Undo2 {...SIZE} />, why: acts.rerun.why, onSelect: acts.rerun.run },
          {
            label: job.is_paused ? "Resume" : "Pause",
            icon: job.is_paused ? <Play {...SIZE} /> : <Pause {...SIZE} />,
            why: acts.pause.why,
            onSelect: acts.pause.run,
          },
          "-",
          { label: "Copy link", icon: <Link2 {...SIZE} />, hint: "u", onSelect: acts.copyLink },
          { label: "Copy as CLI", icon: <SquareTerminal {...SIZE} />, onSelect: () => acts.copyAs("cli") },
          { label: "Copy as cURL", icon: <SquareTerminal {...SIZE} />, onSelect: () => acts.copyAs("curl") },
          { label: "Copy as Python", icon: <Braces {...SIZE} />, onSelect: () => acts.copyAs("python") },
          { label: "Copy as Mermaid", icon: <Workflow {...SIZE} />, onSelect: acts.copyMermaid },
          "-",
          {
            label: "Cancel…",
            icon: <Ban {...SIZE} />,
            hint: "c",
            isDanger: true,
            why: acts.cancel.why,
            onSelect: acts.cancel.run,
          },
          {
            label: "Delete…",
            icon: <Trash2 {...SIZE} />,
            isDanger: true,
            why: acts.remove.why,
            onSelect: acts.remove.run,
          },
        ]}
      />
      {isOpen && (
        <>
          <Button
            icon={job.is_paused ? <Play {...SIZE} /> : <Pause {...SIZE} />}
            why={acts.pause.why}
            busy={acts.isBusy}
            onClick={acts.pause.run}
            className="max-sm:hidden"
          >
            {job.is_paused ? "Resume" : "Pause"}
          </Button>
          <Button variant="danger" why={acts.cancel.why} onClick={acts.cancel.run}>
            Cancel
          </Button>
        </>
      )}
      {!isOpen && (
        <Button icon={<Undo2 {...SIZE} />} why={acts.rerun.why} onClick={acts.rerun.run}>
          Run again…
        </Button>
      )}
    </div>
  );
}
