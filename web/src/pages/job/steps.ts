/** Steps by what they do: the failed step, the steps that wait for an event, the step of a name. */
import type { StepNo } from "../../graph/types";
import type { Activity } from "../../state";
import { waitsFor } from "../../waitText";
import type { JobLive } from "./jobLive";

/** The step that failed first: of a fan-out, the child. */
export function failedStep(live: JobLive): StepNo | undefined {
  const name = live.job().failed_step ?? nameIn(live.job().error);
  const nodes = live.structure().nodes;
  const failed = nodes.filter((node) => live.graph.get(node.id)?.look === "failed");
  const ofName = failed.filter((node) => node.name === name || node.label === name);
  const among = ofName.length > 0 ? ofName : failed;
  return (among.find((node) => node.fan === undefined) ?? among[0])?.id;
}

export interface Asked {
  readonly no: StepNo;
  readonly label: string;
  /** The name of the event. */
  readonly event: string;
}

/** Steps that wait for an event. */
export function askedOfPeople(live: JobLive): Asked[] {
  const asked: Asked[] = [];
  for (const { id } of live.structure().nodes) {
    const step = live.graph.get(id);
    const event = eventOf(live.fact(id)?.waitingFor);
    if (step?.look === "waiting" && event !== null) asked.push({ no: id, label: step.label, event });
  }
  return asked;
}

/** From what matters most to what matters least, as the server orders them (`views/activity.py`). */
const WEIGHT: readonly Activity[] = ["waiting", "running", "queued", "sleeping"];

/** What the open job is doing, by its steps: so that it is said at once, and not when the list is read again. */
export function activityOf(live: JobLive): Activity {
  let least = WEIGHT.length;
  for (const { id, kind, fan } of live.structure().nodes) {
    const step = live.graph.get(id);
    if (step === undefined || (fan ?? step.fan) !== undefined) continue;
    const fact = live.fact(id);
    let found: Activity | null = null;
    if (step.look === "running") found = "running";
    else if (step.look === "queued" || step.look === "ready" || fact?.status === "HELD") found = "queued";
    else if (step.look === "retrying") found = "sleeping";
    else if (step.look === "waiting") {
      const isElsewhere = kind === "recipe" || waitsFor(fact?.waitingFor, "external");
      found = kind === "event" || kind === "approval" ? "waiting" : isElsewhere ? "running" : "sleeping";
    }
    if (found !== null) least = Math.min(least, WEIGHT.indexOf(found));
    if (least === 0) break;
  }
  return WEIGHT[least] ?? "queued";
}

/** Whether a step stands in a line: for a place, a key or money. */
export function isInLine(live: JobLive): boolean {
  return live.structure().nodes.some(({ id }) => waitsFor(live.fact(id)?.waitingFor, "slot"));
}

/** Whether nothing of the job runs though something could: it waits for a worker, a place in a line, or time. */
export function isStanding(live: JobLive): boolean {
  const counts = live.graph.counts();
  const waits = (counts.queued ?? 0) + (counts.ready ?? 0) + (counts.waiting ?? 0);
  return (counts.running ?? 0) === 0 && (counts.retrying ?? 0) === 0 && waits > 0;
}

/** The event in `event:approved`; null when it waits for something else. */
export function eventOf(waitingFor: string | null | undefined): string | null {
  return waitingFor?.startsWith("event:") ? waitingFor.slice("event:".length) : null;
}

/** `name` or `name[3]`, as reasons and plans call steps. */
export function stepNamed(live: JobLive, name: string): StepNo | undefined {
  const found = /^(.*)\[(\d+)\]$/.exec(name);
  const wanted = found === null ? name : `${found[1]} #${found[2]}`;
  return live.structure().nodes.find((node) => (found === null ? node.name : node.label) === wanted)?.id;
}

function nameIn(error: unknown): string | null {
  const step = (error as { step?: unknown } | null)?.step;
  return typeof step === "string" ? step : null;
}
