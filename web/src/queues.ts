/** The default queues of every worker. A user did not name them, so a card does not show them. */
export const DEFAULT_QUEUES: readonly string[] = [
  "recipe_executors", "background_processing", "webhook_listeners", "polling_watchdogs", "main_processing",
]; // biome-ignore format: one list

/** A worker's queues: the named ones, and whether it also takes all default ones. */
export function queuesOf(queues: readonly string[]): {
  readonly named: readonly string[];
  readonly isDefault: boolean;
} {
  const isDefault = DEFAULT_QUEUES.every((queue) => queues.includes(queue));
  return { named: isDefault ? queues.filter((queue) => !DEFAULT_QUEUES.includes(queue)) : queues, isDefault };
}
