/** Patches of the stream: merging several into one, and leaving out what a follower already has. */
import type { Schemas } from "../api/schemas";

/** What the job is doing: lists and the stream of all jobs say it, the document of one job does not. */
type Doing = Partial<Pick<Schemas["ListedJob"], "activity" | "waiting_for">>;
/** Of two documents the one with the higher `seq` is newer. */
export type JobDocument = Schemas["JobDocument"] & Doing;
export type JobPatch = Schemas["JobPatch"];
/** The data of a `patch` frame. */
export type PatchBody = Schemas["ConsolePatch"];

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

/** The part of a patch that is new to a follower at `seq`; null if nothing is. */
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

/** Whether a document was read before another. With equal numbers the later arrival counts. */
export function isOlder(one: JobDocument, other: JobDocument): boolean {
  return one.seq < other.seq;
}

/** How many updates a frame holds, for "catching up (n)". */
export function weight(body: PatchBody): number {
  let count = body.jobs.length;
  for (const patch of Object.values(body.job)) count += Math.max(1, patch.events.length);
  return count;
}
