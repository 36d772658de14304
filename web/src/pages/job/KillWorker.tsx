import { Skull } from "lucide-react";
import { useState } from "react";
import { ask, problemOf } from "../../api/client";
import { isOver } from "../../state";
import { Button } from "../../ui/Button";
import { StateIcon } from "../../ui/StateIcon";
import type { SessionDocument } from "../../use/useSession";
import { afterKill } from "./afterKill";
import type { JobLive } from "./jobLive";
import { useJob, useLines } from "./useJobLive";

const DEMO = "first-minute";

interface Killed {
  readonly worker: string;
  readonly pid: number;
  readonly since: number;
}

interface KillWorkerProps {
  readonly live: JobLive;
  readonly demo: NonNullable<SessionDocument["demo"]>;
}

/** Beside the demo's graph: end the process that does the work, and see that the job does not mind. */
export default function KillWorker({ live, demo }: KillWorkerProps) {
  const job = useJob(live);
  const [killed, setKilled] = useState<Killed | null>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  if (job.job_id !== demo.job_id && job.recipe !== DEMO) return null;
  const over = isOver(job.status);
  if (over && killed === null) return null;

  const kill = async (): Promise<void> => {
    setBusy(true);
    setProblem("");
    const since = live.lines().at(-1)?.seq ?? live.seq();
    try {
      const told = await ask<{ worker: string; pid: number }>("/console/demo/kill-worker", { method: "POST" });
      setKilled({ ...told, since });
    } catch (error) {
      setProblem(problemOf(error).body.detail ?? "The worker could not be killed");
    }
    setBusy(false);
  };
  return (
    <aside
      aria-label="Demo"
      className="flex shrink-0 flex-wrap items-center gap-x-4 gap-y-2 border-line border-t bg-panel px-4 py-2.5 text-[12px]"
    >
      {!over && (
        <Button variant="danger" icon={<Skull size={13} aria-hidden="true" />} busy={isBusy} onClick={kill}>
          {killed === null ? "Kill this worker" : "Kill it again"}
        </Button>
      )}
      {killed === null ? (
        <p className="min-w-48 flex-1 text-dim">
          Does it survive? This sends SIGKILL to the process that runs these steps. Its steps are handed back, and
          another worker runs them.
        </p>
      ) : (
        <Progress live={live} killed={killed} isOver={over} />
      )}
      {problem !== "" && (
        <p role="alert" className="text-danger">
          {problem}
        </p>
      )}
    </aside>
  );
}

interface ProgressProps {
  readonly live: JobLive;
  readonly killed: Killed;
  readonly isOver: boolean;
}

function Progress({ live, killed, isOver: isEnded }: ProgressProps) {
  const story = afterKill(useLines(live), killed.since);
  const label = story.no === null ? "" : (live.graph.get(story.no)?.label ?? "");
  const isExpired = story.phase !== "killed";
  return (
    <ol aria-live="polite" className="flex min-w-48 flex-1 flex-wrap gap-x-4 gap-y-1">
      <Item isDone text={`Process ${killed.pid} was killed.`} />
      <Item
        isDone={isExpired}
        text={
          isExpired ? `Its steps were handed back: ${label} is queued again.` : "The server waits for its heartbeat…"
        }
      />
      {isExpired && (
        <Item
          isDone={story.phase === "moved"}
          text={
            story.phase === "moved" ? `${label} runs again, attempt ${story.attempt}.` : "A new worker is starting…"
          }
        />
      )}
      {isEnded && <Item isDone text="The job has ended. No work was lost." />}
    </ol>
  );
}

function Item({ isDone, text }: { readonly isDone: boolean; readonly text: string }) {
  return (
    <li className="flex items-start gap-2">
      <span className="mt-0.5">
        <StateIcon look={isDone ? "succeeded" : "running"} size={12} />
      </span>
      <span className={isDone ? "" : "text-dim"}>{text}</span>
    </li>
  );
}
