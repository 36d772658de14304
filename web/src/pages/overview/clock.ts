/** Minutes of the day in the chosen time zone. */
import { usePreference } from "../../use/usePreference";

/** What `Intl` takes: `undefined` is the browser's own. */
export type Zone = string | undefined;

export function useClock(): Zone {
  const [zone] = usePreference("zone");
  return zone === "local" ? undefined : zone;
}

/** "07:19 UTC": where a minute is told by itself, its zone is said. */
export function minuteText(at: string, zone: Zone): string {
  return format(new Date(at), { timeZoneName: "short" }, zone);
}

/** "07:19": along an axis. */
export function axisText(seconds: number, zone: Zone): string {
  return format(new Date(seconds * 1_000), {}, zone);
}

function format(at: Date, more: Intl.DateTimeFormatOptions, timeZone: Zone): string {
  const options: Intl.DateTimeFormatOptions = { hour: "2-digit", minute: "2-digit", ...more };
  try {
    return at.toLocaleTimeString("en-GB", timeZone === undefined ? options : { ...options, timeZone });
  } catch {
    // A zone that this browser does not know.
    return at.toLocaleTimeString("en-GB", options);
  }
}
