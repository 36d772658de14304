import { usePreference } from "../use/usePreference";
import { absolute } from "./time";

export interface Live {
  readonly state: "live" | "catching-up" | "offline";
  readonly behind?: number | undefined;
  readonly lastAt: number | null;
}

const TONE = { live: "var(--st-succeeded)", "catching-up": "var(--st-retrying)", offline: "var(--st-failed)" };

/** How far to trust what is on the page: colour, shape and word, as with every state. */
export function LiveDot({ live }: { readonly live: Live }) {
  const [zone] = usePreference("zone");
  const word =
    live.state === "live"
      ? "live"
      : live.state === "offline"
        ? "offline"
        : `catching up${live.behind ? ` ${live.behind}` : ""}`;
  const since = live.lastAt === null ? "No data from the server yet" : `Last data ${absolute(live.lastAt, zone)}`;
  return (
    <span
      role="status"
      data-live={live.state}
      data-tip={since}
      className="inline-flex items-center gap-1.5 text-[12px] text-dim"
    >
      <svg aria-hidden="true" width="8" height="8" viewBox="0 0 8 8">
        {live.state === "offline" ? (
          <circle cx="4" cy="4" r="3" fill="none" stroke={TONE.offline} strokeWidth="2" />
        ) : (
          <circle cx="4" cy="4" r="4" fill={TONE[live.state]} />
        )}
      </svg>
      {word}
    </span>
  );
}
