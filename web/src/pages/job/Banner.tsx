import { CircleX, Hand, Hourglass, Pause, Play, RotateCcw, Stamp, Wallet } from "lucide-react";
import { lazy, type ReactNode, Suspense, useState } from "react";
import { useLocation } from "wouter";
import type { StepNo } from "../../graph/types";
import { color, isOver, jobLook, type Look, saidOf } from "../../state";
import { Button } from "../../ui/Button";
import { useActsHere } from "./acts";
import { faultOf } from "./fault";
import type { JobLive } from "./jobLive";
import { type Asked, askedOfPeople, failedStep, isInLine, isStanding, stepNamed } from "./steps";
import { useJob, useNowAndThen } from "./useJobLive";
import { useRetryPlan } from "./usePlan";
import { isForMoney, useStandstill } from "./useStandstill";

// The form is not needed before the question is read.
const AnswerDialog = lazy(() => import("./AnswerDialog"));

const LOOK_MS = 300;

interface BannerProps {
  readonly id: string;
  readonly live: JobLive;
  readonly selected: StepNo | null;
  readonly onSelect: (no: StepNo) => void;
}

/** What matters most about the job now, with what can be done about it; nothing while all is well. */
export function Banner(props: BannerProps) {
  const job = useJob(props.live);
  const asked = useNowAndThen(props.live, () => askedOfPeople(props.live), LOOK_MS);
  const look = jobLook(job.status);
  if (isOver(job.status)) return look === "succeeded" ? null : <Ended {...props} />;
  if (job.is_paused) return <Paused />;
  const first = asked[0];
  return first === undefined ? <Stuck {...props} /> : <Asks {...props} asked={first} others={asked.length - 1} />;
}

interface StripProps {
  readonly look: Look;
  readonly icon: ReactNode;
  readonly children: ReactNode;
  readonly actions?: ReactNode;
}

function Strip({ look, icon, children, actions }: StripProps) {
  const tone = color(look);
  return (
    <section
      aria-label="What needs attention"
      className="mx-4 mb-1.5 flex flex-wrap items-center gap-x-3 gap-y-2 rounded-lg border px-3 py-2"
      style={{
        borderColor: `color-mix(in oklab, ${tone} 38%, transparent)`,
        background: `color-mix(in oklab, ${tone} 9%, transparent)`,
      }}
    >
      <span className="shrink-0" style={{ color: tone }}>
        {icon}
      </span>
      <div className="min-w-40 flex-1">{children}</div>
      {actions !== undefined && <div className="flex flex-wrap items-center gap-2">{actions}</div>}
    </section>
  );
}

function Ended({ id, live, selected, onSelect }: BannerProps) {
  const job = useJob(live);
  const acts = useActsHere();
  const fault = faultOf(job.error);
  const failed = failedStep(live);
  const isCancelled = jobLook(job.status) === "cancelled";
  const plan = useRetryPlan(id, acts.retry.why === undefined);
  const step = failed === undefined ? (fault?.step ?? "") : (live.graph.get(failed)?.label ?? "");
  const said = isCancelled ? "Cancelled" : (saidOf(job.status) ?? "Failed");
  const again = plan.data;
  return (
    <Strip
      look={isCancelled ? "cancelled" : "failed"}
      icon={<CircleX size={16} aria-hidden="true" />}
      actions={
        <>
          {failed !== undefined && failed !== selected && (
            <Button onClick={() => onSelect(failed)}>Show {live.graph.get(failed)?.label}</Button>
          )}
          <Button
            variant="primary"
            icon={<RotateCcw size={13} aria-hidden="true" />}
            busy={acts.isBusy}
            why={acts.retry.why}
            data-tip="r"
            onClick={acts.retry.run}
          >
            {step === "" || isCancelled ? "Retry" : `Retry from ${step}`}
          </Button>
        </>
      }
    >
      <p className="line-clamp-2 break-words">
        <strong className="font-semibold">
          {said}
          {step !== "" && !isCancelled && ` at ${step}`}
        </strong>
        {fault !== null && (
          <>
            {": "}
            {!isCancelled && <code className="font-mono text-[12px]">{fault.kind || fault.code}</code>} {fault.message}
          </>
        )}
      </p>
      {again !== undefined && (
        <p className="text-[12px] text-dim">
          A retry runs {listed(again.run_again)} again and keeps {again.kept.length} finished{" "}
          {again.kept.length === 1 ? "step" : "steps"}.
        </p>
      )}
    </Strip>
  );
}

function listed(names: readonly string[]): string {
  if (names.length === 2) return names.join(" and ");
  return names.length <= 3 ? names.join(", ") : `${names.slice(0, 2).join(", ")} and ${names.length - 2} more steps`;
}

function Paused() {
  const { pause, isBusy } = useActsHere();
  return (
    <Strip
      look="waiting"
      icon={<Pause size={16} aria-hidden="true" />}
      actions={
        <Button
          variant="primary"
          icon={<Play size={13} aria-hidden="true" />}
          busy={isBusy}
          why={pause.why}
          onClick={pause.run}
        >
          Resume
        </Button>
      }
    >
      <strong className="font-semibold">Paused.</strong> Running steps finish; no other step starts.
    </Strip>
  );
}

/** No step has run for a while: say what the job waits for. */
function Stuck({ id, live, selected, onSelect }: BannerProps) {
  const isStill = useNowAndThen(live, () => isStanding(live), LOOK_MS);
  const isHeld = useNowAndThen(live, () => isInLine(live), LOOK_MS);
  const reason = useStandstill(id, isStill || isHeld);
  const [, go] = useLocation();
  if (reason === undefined) return null;
  const no = stepNamed(live, reason.step);
  const show = no !== undefined && no !== selected && <Button onClick={() => onSelect(no)}>Show {reason.step}</Button>;
  // While other steps run, a line is nothing special. A budget that is used up is: it does not pass by itself.
  if (isForMoney(reason))
    return (
      <Strip
        look="waiting"
        icon={<Wallet size={16} aria-hidden="true" />}
        actions={
          <>
            {show}
            <Button onClick={() => go("/providers")}>See the budgets</Button>
          </>
        }
      >
        <strong className="font-semibold">{reason.step}</strong> {reason.because}.
      </Strip>
    );
  const approval = reason.detail.approval;
  if (typeof approval === "string")
    return (
      <Strip
        look="waiting"
        icon={<Stamp size={16} aria-hidden="true" />}
        actions={<Button onClick={() => go(`/approvals/${approval}`)}>Open the approval</Button>}
      >
        <strong className="font-semibold">{reason.step || "The job"}</strong> {reason.because}.
      </Strip>
    );
  if (!isStill) return null;
  return (
    <Strip look="queued" icon={<Hourglass size={16} aria-hidden="true" />} actions={show}>
      <strong className="font-semibold">{reason.step || "The job"}</strong>: {reason.because}.
    </Strip>
  );
}

interface AsksProps extends BannerProps {
  readonly asked: Asked;
  readonly others: number;
}

function Asks({ id, live, asked, others, selected, onSelect }: AsksProps) {
  const [isAnswering, setAnswering] = useState(false);
  const may = useActsHere().pause.why;
  return (
    <Strip
      look="waiting"
      icon={<Hand size={16} aria-hidden="true" />}
      actions={
        <>
          {/* Once it is looked at, the form beside it is the place to answer. */}
          {selected !== asked.no && <Button onClick={() => onSelect(asked.no)}>Look first</Button>}
          {selected !== asked.no && (
            <Button variant="primary" why={may} onClick={() => setAnswering(true)}>
              Send “{asked.event}”…
            </Button>
          )}
        </>
      }
    >
      <strong className="font-semibold">{live.graph.get(asked.no)?.label}</strong> waits for a person to say{" "}
      <code className="font-mono text-[12px]">{asked.event}</code>.
      {others > 0 && <span className="text-dim"> So do {others} more.</span>}
      {isAnswering && (
        <Suspense>
          <AnswerDialog id={id} live={live} no={asked.no} onClose={() => setAnswering(false)} />
        </Suspense>
      )}
    </Strip>
  );
}
