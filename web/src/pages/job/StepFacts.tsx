import { Link } from "wouter";
import { progressOf } from "../../graph/document";
import { useStep } from "../../graph/store";
import type { StepNo } from "../../graph/types";
import { shortId } from "../../shortId";
import { isStepOver } from "../../state";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Json } from "../../ui/Json";
import { Lasted } from "../../ui/Lasted";
import { AnswerForm } from "./AnswerForm";
import { AttemptList } from "./AttemptList";
import { ChildList } from "./ChildList";
import { FaultView } from "./FaultView";
import { faultOf } from "./fault";
import type { JobLive } from "./jobLive";
import { Logs } from "./Logs";
import { Row } from "./Row";
import { Section } from "./Section";
import type { StepCost, StepDetail } from "./types";
import { ValueView } from "./ValueView";
import { StepLink, WhyView } from "./WhyView";
import { WorkFacts } from "./WorkFacts";

interface StepFactsProps {
  readonly id: string;
  readonly live: JobLive;
  readonly step: StepDetail;
  readonly onSelect: (no: StepNo) => void;
}

/** What went wrong or is waited for comes first, then what was done, then what went in and came out. */
export default function StepFacts({ id, live, step, onSelect }: StepFactsProps) {
  const node = useStep(live.graph, step.no);
  const fault = faultOf(step.error);
  const isOver = isStepOver(step.status);
  const cost = costText(step.cost);
  const progress = progressOf(step.progress);
  return (
    <>
      {fault !== null && step.status !== "COMPLETED" && <FaultView fault={fault} of={step.step} />}
      {step.awaited !== null && <AnswerForm key={step.no} id={id} awaited={step.awaited} />}
      {step.why !== null && !isOver && step.status !== "RUNNING" && step.awaited === null && (
        <WhyView live={live} why={step.why} onSelect={onSelect} />
      )}
      {node?.fan !== undefined && <ChildList live={live} no={step.no} fan={node.fan} onSelect={onSelect} />}
      <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-4 gap-y-1.5">
        {node?.fan === undefined && (
          <Row name="Attempt">
            {step.attempt === 0 ? "none yet" : step.attempt}
            {step.failures > 0 && <span className="text-dim"> · {step.failures} failed</span>}
            {step.losses > 0 && <span className="text-dim"> · {step.losses} lost</span>}
          </Row>
        )}
        {step.started_at !== null && (
          <Row name={isOver ? "Took" : "Runs for"}>
            <Lasted from={step.started_at} to={step.finished_at} />
            <span className="text-dim">
              {" · "}
              <Ago at={step.started_at} />
            </span>
          </Row>
        )}
        {step.wake_at !== null && !isOver && (
          <Row name={step.status === "RUNNING" ? "Time limit" : "Until"}>
            <Ago at={step.wake_at} />
          </Row>
        )}
        <Row name="Runs">
          <code className="break-all font-mono text-[12px]">{step.run}</code>
        </Row>
        {step.kind === "task" && <Row name="Queue">{step.queue}</Row>}
        {step.worker !== null && (
          <Row name="Worker">
            <Link
              href={`/workers?worker=${encodeURIComponent(step.worker)}`}
              className="font-mono text-[12px] text-accent hover:underline"
              data-tip={step.worker}
            >
              {shortId(step.worker)}
            </Link>
          </Row>
        )}
        {step.needs.length > 0 && (
          <Row name="Needs">
            <span className="flex flex-wrap gap-1">
              {step.needs.map((name) => (
                <StepLink key={name} live={live} name={name} onSelect={onSelect} />
              ))}
            </span>
          </Row>
        )}
        {step.idempotency_key !== "" && (
          <Row name="Idempotency">
            <span className="flex min-w-0 items-center">
              <code className="min-w-0 truncate font-mono text-[11px]" data-tip={step.idempotency_key}>
                {step.idempotency_key}
              </code>
              <Copy text={step.idempotency_key} label="Copy the idempotency key" />
            </span>
          </Row>
        )}
        {cost !== null && <Row name="Cost">{cost}</Row>}
      </dl>
      {progress !== null && !isOver && (
        <Section title="Progress" aside={progress.percent}>
          {progress.part !== null && (
            <div className="h-1.5 overflow-hidden rounded-full bg-line" aria-hidden="true">
              <div className="h-full rounded-full bg-(--st-running)" style={{ width: `${progress.part}%` }} />
            </div>
          )}
          {progress.message !== "" && <p className="mt-1 break-words text-[12px] text-dim">{progress.message}</p>}
        </Section>
      )}
      {step.attempts.length > 0 && (
        <Section
          title="Attempts"
          aside={
            <Link
              href={`/jobs/${id}?tab=events&of=${encodeURIComponent(node?.label ?? step.step)}&step=${step.no}`}
              className="font-normal text-accent normal-case tracking-normal hover:underline"
            >
              See its events
            </Link>
          }
        >
          <AttemptList attempts={step.attempts} />
        </Section>
      )}
      {step.logs.length > 0 && (
        <Section title="Log">
          <Logs lines={step.logs} />
        </Section>
      )}
      {step.provider !== null && (
        <Section title="Provider job">
          <WorkFacts work={step.provider} />
        </Section>
      )}
      {step.inputs_state === "large" && (
        <Section title="Inputs">
          <p className="text-dim">Too large to show: they are the outputs of the steps that it needs.</p>
        </Section>
      )}
      {step.inputs_state === "hidden" && (
        <Section title="Inputs">
          <p className="text-dim">Not shown: they come from a quarantined output.</p>
        </Section>
      )}
      {hasSome(step.inputs) && (
        <Section title={step.inputs_state === "template" ? "Inputs, as the recipe has them" : "Inputs"}>
          <Json value={step.inputs} label="inputs" />
        </Section>
      )}
      {step.status === "COMPLETED" && (
        <Section title="Output">
          <ValueView
            path={step.links.output ?? `/jobs/${id}/steps/${step.no}/output`}
            name="output"
            file={`${step.step}${step.index === null ? "" : `-${step.index}`}.json`}
            none="The step returned nothing."
          />
        </Section>
      )}
    </>
  );
}

/** Whether there is anything to show. */
function hasSome(value: unknown): boolean {
  if (value === null || value === undefined) return false;
  return typeof value !== "object" || Object.keys(value).length > 0;
}

function costText(cost: StepCost | null): string | null {
  if (cost === null) return null;
  const tokens = cost.tokens_in + cost.tokens_out;
  const said = [Number(cost.amount) > 0 && cost.amount, tokens > 0 && `${tokens.toLocaleString("en")} tokens`];
  return said.filter(Boolean).join(" · ") || null;
}
