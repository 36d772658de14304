/** Live data for pages: follow all jobs or one, and know how live it is. */
import type { JobFollower, Unfollow } from "./client";
import type { JobDocument } from "./patch";
import { tabClient } from "./tab";

export type { JobFollower, Unfollow } from "./client";
export type { Live } from "./live";
export type { JobDocument, JobPatch } from "./patch";
export { useLive } from "./useLive";

/**
 * Every job that changes, at most once per animation frame. `onReset` says when to read the list: once as soon as the
 * stream is open, because what was read before may have missed a change, and whenever the stream could not go on.
 */
export function followJobs(listener: (jobs: JobDocument[]) => void, onReset: () => void): Unfollow {
  return tabClient().followJobs(listener, onReset);
}

/** The signed-in caller changed: close everything that was opened for the previous one. */
export function restartLive(): void {
  tabClient().restart();
}

/** One job from the `seq` of its snapshot on. After `onReset` read it again, and follow from its new `seq`. */
export function followJob(id: string, seq: number, on: JobFollower): Unfollow {
  return tabClient().followJob(id, seq, on);
}
