/**
 * What can be followed, and how far it was followed.
 *
 * A topic is `jobs` or `job:<uuid>`; its place is what stands behind the `@`: opaque for `jobs`, the number of the last
 * event for a job. A cursor is the topics with their places, joined by commas.
 */

export type Topic = string;
export type Place = string;

export const JOBS: Topic = "jobs";
export const TOPICS_MAX = 64;

export function jobTopic(id: string): Topic {
  return `job:${id}`;
}

/** The job that a topic is about; null for `jobs`. */
export function jobOf(topic: Topic): string | null {
  return topic.startsWith("job:") ? topic.slice(4) : null;
}

export function parseCursor(text: string): ReadonlyMap<Topic, Place | null> {
  const found = new Map<Topic, Place | null>();
  for (const part of text.split(",")) {
    if (part === "") continue;
    const at = part.indexOf("@");
    if (at < 0) found.set(part, null);
    else found.set(part.slice(0, at), part.slice(at + 1));
  }
  return found;
}

export function cursorText(places: Iterable<readonly [Topic, Place | null]>): string {
  return [...places].map(([topic, place]) => (place === null ? topic : `${topic}@${place}`)).join(",");
}

/** Whether one place of a topic is before another, where that can be told: places of `jobs` have no order for us. */
export function isBefore(topic: Topic, one: Place, other: Place): boolean {
  return jobOf(topic) !== null && Number(one) < Number(other);
}
