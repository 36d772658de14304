import { useNow } from "../use/useNow";
import { usePreference } from "../use/usePreference";
import { absolute, relative } from "./time";

interface AgoProps {
  readonly at: string | number | null | undefined;
}

/** How long ago, moving; the moment itself and its zone when one points at it. */
export function Ago({ at }: AgoProps) {
  const [zone] = usePreference("zone");
  const moment = at === null || at === undefined ? Number.NaN : typeof at === "number" ? at : Date.parse(at);
  // What is older than a minute changes every minute at most: no need to look every second.
  const now = useNow(Math.abs(Date.now() - moment) < 60_000 ? 1_000 : 15_000);
  if (Number.isNaN(moment)) return <span className="text-dim">–</span>;
  return (
    <time
      dateTime={new Date(moment).toISOString()}
      data-tip={absolute(moment, zone)}
      className="whitespace-nowrap tabular-nums"
    >
      {relative(moment, now)}
    </time>
  );
}
