/** What the stream says of jobs, several sayings as one, and only what is new to whoever hears it. */
import type { components } from "../api/types.gen";

/** `seq`: the job's last event when the document was read; the later one of two documents is the truth. */
export type JobDocument = components["schemas"]["JobDocument"] & { readonly seq: number } & Doing;
/** What the job is doing: lists and the stream of all jobs say it, the document of one job does not. */
type Doing = Partial<Pick<components["schemas"]["ListedJob"], "activity" | "waiting_for">>;
export type StepDocument = components["schemas"]["StepDocument"];

export type FanDocument = components["schemas"]["FanDocument"];

export interface EventLine {
  readonly seq: number;
  readonly at: string;
  readonly type: string;
  readonly no: number | null;
  readonly step: string | null;
  readonly attempt: number | null;
  readonly source: string | null;
}

export interface JobPatch {
  readonly seq: number;
  readonly job: JobDocument | null;
  readonly steps: readonly StepDocument[];
  readonly fans: Readonly<Record<string, FanDocument>>;
  readonly events: readonly EventLine[];
}

/** The data of a `patch` frame. */
export interface PatchBody {
  readonly jobs?: readonly JobDocument[];
  readonly job?: Readonly<Record<string, JobPatch>>;
}

/** Two patches of one job as one: documents of the later, events of both, none twice. */
export function mergeJobPatches(earlier: JobPatch, later: JobPatch): JobPatch {
  const steps = new Map(earlier.steps.map((step) => [step.no, step]));
  for (const step of later.steps) steps.set(step.no, step);
  return {
    seq: Math.max(earlier.seq, later.seq),
    job: later.job ?? earlier.job,
    steps: [...steps.values()],
    fans: { ...earlier.fans, ...later.fans },
    events: [...earlier.events, ...later.events.filter((event) => event.seq > earlier.seq)],
  };
}

/** What of a patch is new to one who has been told up to `seq`; null if nothing is. */
export function newTo(seq: number, patch: JobPatch): JobPatch | null {
  if (patch.seq < seq) return null;
  // Fan-outs are counted at a pace of their own: their figures come without an event too.
  if (patch.seq === seq && Object.keys(patch.fans).length === 0) return null;
  const first = patch.events[0];
  if (first === undefined || first.seq > seq) return patch;
  return { ...patch, events: patch.events.filter((event) => event.seq > seq) };
}

/** Keep the later document of each job. */
export function mergeJobs(into: Map<string, JobDocument>, jobs: readonly JobDocument[]): void {
  for (const job of jobs) {
    const known = into.get(job.job_id);
    if (known === undefined || !isOlder(job, known)) into.set(job.job_id, job);
  }
}

/** Whether a document was read before another. Equal numbers: the one that came later counts. */
export function isOlder(one: JobDocument, other: JobDocument): boolean {
  return one.seq < other.seq;
}

/** How many updates a frame holds, for "catching up (n)". */
export function weight(body: PatchBody): number {
  let count = body.jobs?.length ?? 0;
  for (const patch of Object.values(body.job ?? {})) count += Math.max(1, patch.events.length);
  return count;
}
