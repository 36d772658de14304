/** The topics of all tabs as one: who follows which, and how far each has been told. */
import { isBefore, jobOf, type Place, TOPICS_MAX, type Topic } from "./topic";

/** What a join means for the joining tab, and for the connection. */
export type Joined =
  /** The topic was not followed: the connection must take it up. */
  | "added"
  /** It is followed, from a later place on: the connection must go back, now. */
  | "rewound"
  /** It is asked for already, and not open yet. */
  | "waiting"
  /** It is open, and goes on for this one too. */
  | "open"
  /** It is open somewhere else than this one stands: it must read its snapshot again. */
  | "elsewhere";

interface Entry {
  place: Place | null;
  isOpen: boolean;
  readonly tabs: Set<string>;
}

export interface TopicTable {
  join(tab: string, topic: Topic, place: Place | null): Joined;
  leave(tab: string, topic: Topic): void;
  leaveAll(tab: string): void;
  /** Forget topics without followers; answers whether there were any. */
  sweep(): boolean;
  drop(topic: Topic): void;
  /** The connection is at this place of the topic. False if no tab follows it. */
  reach(topic: Topic, place: Place | null): boolean;
  /** The connection is gone; places stay. */
  close(): void;
  /** Forget every place: they are no good to this server. */
  forgetPlaces(): void;
  place(topic: Topic): Place | null;
  isOpen(topic: Topic): boolean;
  tabsOf(topic: Topic): ReadonlySet<string>;
  /** What to ask the server for: the newest first where there are too many. */
  wanted(): readonly (readonly [Topic, Place | null])[];
  topics(): readonly Topic[];
}

const NO_TABS: ReadonlySet<string> = new Set();

export function createTable(): TopicTable {
  const entries = new Map<Topic, Entry>();

  const join = (tab: string, topic: Topic, place: Place | null): Joined => {
    const entry = entries.get(topic);
    if (entry === undefined) {
      entries.set(topic, { place, isOpen: false, tabs: new Set([tab]) });
      return "added";
    }
    entry.tabs.add(tab);
    if (place !== null && entry.place !== null && isBefore(topic, place, entry.place)) {
      entry.place = place;
      return "rewound";
    }
    if (!entry.isOpen) return "waiting";
    // What a job's follower has had already is left out by the follower itself; of `jobs` only equality can be told.
    if (jobOf(topic) !== null || place === null || place === entry.place) return "open";
    return "elsewhere";
  };

  return {
    join,
    leave: (tab, topic) => void entries.get(topic)?.tabs.delete(tab),
    leaveAll: (tab) => {
      for (const entry of entries.values()) entry.tabs.delete(tab);
    },
    sweep: () => {
      const before = entries.size;
      for (const [topic, entry] of entries) if (entry.tabs.size === 0) entries.delete(topic);
      return entries.size < before;
    },
    drop: (topic) => void entries.delete(topic),
    reach: (topic, place) => {
      const entry = entries.get(topic);
      if (entry === undefined) return false;
      if (place !== null) entry.place = place;
      entry.isOpen = true;
      return true;
    },
    close: () => {
      for (const entry of entries.values()) entry.isOpen = false;
    },
    forgetPlaces: () => {
      for (const entry of entries.values()) entry.place = null;
    },
    place: (topic) => entries.get(topic)?.place ?? null,
    isOpen: (topic) => entries.get(topic)?.isOpen ?? false,
    tabsOf: (topic) => entries.get(topic)?.tabs ?? NO_TABS,
    wanted: () =>
      [...entries]
        .filter(([, entry]) => entry.tabs.size > 0)
        .map(([topic, entry]) => [topic, entry.place] as const)
        .slice(-TOPICS_MAX),
    topics: () => [...entries.keys()],
  };
}
