/** Values to choose from while a filter is written: of the recipes there are, and of the jobs in sight. */
import type { ListStore } from "./listStore";
import type { Known } from "./words";

const LOOKED_AT = 500;
const EACH_MAX = 100;

export function knownOf(store: ListStore, recipes: readonly string[]): Known {
  const found = {
    recipe: new Set(recipes),
    caller: new Set<string>(),
    failed_step: new Set<string>(),
    label: new Set<string>(),
  };
  for (const id of store.ids().slice(0, LOOKED_AT)) {
    const job = store.get(id);
    if (job === undefined) continue;
    found.recipe.add(job.recipe);
    found.caller.add(job.caller);
    if (job.failed_step !== null) found.failed_step.add(job.failed_step);
    for (const [name, value] of Object.entries(job.labels)) found.label.add(`${name}=${value}`);
  }
  return Object.fromEntries(Object.entries(found).map(([key, all]) => [key, [...all].sort().slice(0, EACH_MAX)]));
}
