/** The queues that every worker takes from unless it is told which: nobody made them, so they say nothing on a card. */
export const DEFAULT_QUEUES: readonly string[] = [
  "recipe_executors", "background_processing", "webhook_listeners", "polling_watchdogs", "main_processing",
]; // biome-ignore format: one list

/** A worker's queues apart: those that somebody named, and whether it takes all the default ones beside them. */
export function queuesOf(queues: readonly string[]): {
  readonly named: readonly string[];
  readonly isDefault: boolean;
} {
  const isDefault = DEFAULT_QUEUES.every((queue) => queues.includes(queue));
  return { named: isDefault ? queues.filter((queue) => !DEFAULT_QUEUES.includes(queue)) : queues, isDefault };
}
