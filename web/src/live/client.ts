/**
 * The tab's side: the followers of this tab, and one batch for each of them per animation frame.
 *
 * Every follower asks the hub for itself, with the place where its own snapshot stands, and hears nothing until the hub
 * says that the topic is open at that place or before. From then on it gets only what is new to it, so two
 * followers that began at different places can share a topic: neither misses an event, and neither gets one twice.
 */
import { unhandled } from "../api/schemas";
import type { Link } from "./link";
import { type JobDocument, type JobPatch, mergeJobPatches, mergeJobs, newTo } from "./patch";
import type { GoneCode, Status, ToHub, ToTab } from "./protocol";
import { JOBS, jobOf, jobTopic, type Place, type Topic } from "./topic";

export type Unfollow = () => void;

const ASKS_MAX = 3;

export interface JobFollower {
  onPatch(patch: JobPatch): void;
  /** Patches are missing: read the snapshot again, and follow from its `seq` on. */
  onReset(): void;
  /** There will be no more patches. `ended`: the job is over and everything was told. */
  onGone(code: GoneCode): void;
}

interface ListFollower {
  readonly listener: (jobs: JobDocument[]) => void;
  readonly onReset: () => void;
  isIn: boolean;
}

interface OneFollower {
  readonly on: JobFollower;
  seq: number;
  isIn: boolean;
  asked: number;
}

interface Followed {
  /** How far this tab was told of `jobs`. */
  received: Place | null;
  readonly lists: Set<ListFollower>;
  readonly ones: Set<OneFollower>;
}

export interface Client {
  followJobs(listener: (jobs: JobDocument[]) => void, onReset: () => void): Unfollow;
  followJob(id: string, seq: number, on: JobFollower): Unfollow;
  hear(message: ToTab): void;
  /** The way to the hub is open, or is another one. */
  connect(link: Pick<Link, "send">): void;
  /** Not seen for long: stop following, and know how far it was. */
  rest(): void;
  wake(): void;
  /** Another caller is signed in. */
  restart(): void;
  /** Deliver now what waits for the next frame. */
  flush(): void;
}

export function createClient(onStatus: (status: Status) => void, nextFrame: (run: () => void) => void): Client {
  const followed = new Map<Topic, Followed>();
  const pendingJobs = new Map<string, JobDocument>();
  const pendingJob = new Map<string, JobPatch>();
  let link: Pick<Link, "send"> | null = null;
  let isResting = false;
  let isAsked = false;

  const send = (message: ToHub): void => {
    if (!isResting) link?.send(message);
  };
  const join = (topic: Topic, place: Place | null, isBack: boolean): void =>
    send({ kind: "join", topic, place, isBack });
  const joinAll = (isBack: boolean): void => {
    flush();
    for (const [topic, one] of followed) join(topic, placeOf(one), isBack);
  };

  const flush = (): void => {
    isAsked = false;
    const jobs = [...pendingJobs.values()];
    pendingJobs.clear();
    const patches = [...pendingJob];
    pendingJob.clear();
    for (const follower of jobs.length > 0 ? [...(followed.get(JOBS)?.lists ?? [])] : []) {
      if (follower.isIn) follower.listener(jobs);
    }
    for (const [id, patch] of patches) {
      for (const follower of [...(followed.get(jobTopic(id))?.ones ?? [])]) {
        const fresh = follower.isIn ? newTo(follower.seq, patch) : null;
        if (fresh === null) continue;
        follower.seq = patch.seq;
        follower.on.onPatch(fresh);
      }
    }
  };
  const ask = (): void => {
    if (isAsked) return;
    isAsked = true;
    nextFrame(() => isAsked && flush());
  };

  const reset = (topic: Topic, place: Place | null): void => {
    flush();
    const one = followed.get(topic);
    if (one === undefined) return;
    one.received = place;
    for (const follower of [...one.lists]) {
      follower.isIn = true;
      follower.onReset();
    }
    for (const follower of [...one.ones]) {
      follower.seq = place === null ? follower.seq : Number(place);
      follower.isIn = true;
      follower.on.onReset();
    }
  };

  const opened = (topic: Topic, place: Place | null): void => {
    // What waits was told before: it may begin later than where the new ones stand.
    flush();
    const one = followed.get(topic);
    if (one === undefined) return;
    one.received = place ?? one.received;
    for (const follower of [...one.lists].filter((each) => !each.isIn)) {
      follower.isIn = true;
      follower.onReset();
    }
    const at = Number(place ?? 0);
    for (const follower of [...one.ones].filter((each) => !each.isIn)) {
      follower.isIn = follower.seq >= at;
      // The topic was opened for a follower that is further ahead: ask for what is between, a few times at most.
      if (!follower.isIn && follower.asked++ < ASKS_MAX) join(topic, String(follower.seq), false);
      else if (!follower.isIn) follower.on.onReset();
    }
  };

  const hearJob = (id: string, patch: JobPatch): void => {
    if (!followed.has(jobTopic(id))) return;
    const known = pendingJob.get(id);
    pendingJob.set(id, known === undefined ? patch : mergeJobPatches(known, patch));
    ask();
  };
  const hearJobs = (jobs: readonly JobDocument[], place: Place | null): void => {
    const one = followed.get(JOBS);
    if (one === undefined) return;
    one.received = place ?? one.received;
    mergeJobs(pendingJobs, jobs);
    ask();
  };
  const gone = (topic: Topic, code: GoneCode): void => {
    flush();
    const one = followed.get(topic);
    followed.delete(topic);
    for (const follower of [...(one?.ones ?? [])]) follower.on.onGone(code);
  };
  const hear = (message: ToTab): void => {
    switch (message.kind) {
      case "status":
        onStatus(message.status);
        break;
      case "open":
        opened(message.topic, message.place);
        break;
      case "jobs":
        hearJobs(message.jobs, message.place);
        break;
      case "job":
        hearJob(message.id, message.patch);
        break;
      case "reset":
        reset(message.topic, message.place);
        break;
      case "gone":
        gone(message.topic, message.code);
        break;
      case "again":
        send({ kind: "hello" });
        joinAll(true);
        break;
      default:
        unhandled(message);
    }
  };

  const entry = (topic: Topic): Followed => {
    const known = followed.get(topic);
    if (known !== undefined) return known;
    const fresh: Followed = { received: null, lists: new Set(), ones: new Set() };
    followed.set(topic, fresh);
    return fresh;
  };
  const end = (topic: Topic, one: Followed): void => {
    if (one.lists.size + one.ones.size > 0 || followed.get(topic) !== one) return;
    followed.delete(topic);
    if (topic === JOBS) pendingJobs.clear();
    else pendingJob.delete(jobOf(topic) ?? "");
    send({ kind: "leave", topic });
  };

  return {
    hear,
    flush,
    followJobs: (listener, onReset) => {
      const one = entry(JOBS);
      const follower: ListFollower = { listener, onReset, isIn: false };
      one.lists.add(follower);
      join(JOBS, null, false);
      return () => {
        one.lists.delete(follower);
        end(JOBS, one);
      };
    },
    followJob: (id, seq, on) => {
      const topic = jobTopic(id);
      const one = entry(topic);
      const follower: OneFollower = { on, seq, isIn: false, asked: 0 };
      one.ones.add(follower);
      join(topic, String(seq), false);
      return () => {
        one.ones.delete(follower);
        end(topic, one);
      };
    },
    connect: (next) => {
      link = next;
      joinAll(false);
    },
    rest: () => {
      if (isResting) return;
      flush();
      for (const topic of followed.keys()) send({ kind: "leave", topic });
      isResting = true;
    },
    restart: () => send({ kind: "restart" }),
    wake: () => {
      const isBack = isResting;
      isResting = false;
      send({ kind: "nudge" });
      if (isBack) joinAll(true);
    },
  };
}

/** Where a topic must be gone on from, for the one in this tab that is furthest behind. */
function placeOf(one: Followed): Place | null {
  if (one.ones.size === 0) return one.received;
  return String(Math.min(...[...one.ones].map((follower) => follower.seq)));
}
