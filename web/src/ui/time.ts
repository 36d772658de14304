/** Times and durations as people read them. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** "now", "12s ago", "3m ago", "in 2h", "4d ago". */
export function relative(at: number, now: number): string {
  const gap = now - at;
  const size = Math.abs(gap);
  if (size < SECOND) return "now";
  const text =
    size < MINUTE
      ? `${Math.floor(size / SECOND)}s`
      : size < HOUR
        ? `${Math.floor(size / MINUTE)}m`
        : size < 2 * DAY
          ? `${Math.floor(size / HOUR)}h`
          : `${Math.floor(size / DAY)}d`;
  return gap > 0 ? `${text} ago` : `in ${text}`;
}

/** "38 ms", "4.2 s", "1 m 07 s", "2 h 05 m", "3 d 4 h": always with units, never more than two of them. */
export function lasted(ms: number): string {
  if (!Number.isFinite(ms)) return "–";
  if (ms < 0) return "0 ms";
  if (ms < SECOND) return `${Math.floor(ms)} ms`;
  if (ms < 10 * SECOND) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (ms < MINUTE) return `${Math.floor(ms / SECOND)} s`;
  if (ms < HOUR) return `${Math.floor(ms / MINUTE)} m ${two((ms % HOUR % MINUTE) / SECOND)} s`; // biome-ignore format: one thought
  if (ms < 2 * DAY) return `${Math.floor(ms / HOUR)} h ${two((ms % HOUR) / MINUTE)} m`;
  return `${Math.floor(ms / DAY)} d ${Math.floor((ms % DAY) / HOUR)} h`;
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** "16 Nov 2026, 06:41:07.250 UTC": the zone is always said. */
export function absolute(at: number, zone: string): string {
  let format = formats.get(zone);
  if (format === undefined) {
    format = makeFormat(zone);
    formats.set(zone, format);
  }
  return format.format(at);
}

function makeFormat(zone: string): Intl.DateTimeFormat {
  const options: Intl.DateTimeFormatOptions = {
    day: "2-digit",
    month: "short",
    year: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    fractionalSecondDigits: 3,
    hourCycle: "h23",
    timeZoneName: "short",
  };
  try {
    return new Intl.DateTimeFormat("en-GB", zone === "local" ? options : { ...options, timeZone: zone });
  } catch {
    // A zone that this browser does not know, from another one's settings.
    return new Intl.DateTimeFormat("en-GB", options);
  }
}

function two(value: number): string {
  return String(Math.floor(value)).padStart(2, "0");
}
