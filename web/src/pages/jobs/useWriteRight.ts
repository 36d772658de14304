import { useSession } from "../../use/useSession";

/** Why this person may not change jobs; undefined if it may. */
export function useWriteRight(): string | undefined {
  const { can } = useSession();
  return can("jobs:write") ? undefined : "Your key may read jobs but not change them (it lacks jobs:write)";
}
