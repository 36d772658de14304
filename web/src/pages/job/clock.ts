/** The time of day, for lists where the day goes without saying; the whole moment is in the tip. */
const formats = new Map<string, Intl.DateTimeFormat>();

export function clock(at: number, zone: string): string {
  if (Number.isNaN(at)) return "–";
  let format = formats.get(zone);
  if (format === undefined) {
    format = make(zone);
    formats.set(zone, format);
  }
  return format.format(at);
}

function make(zone: string): Intl.DateTimeFormat {
  const options: Intl.DateTimeFormatOptions = {
    ...{ hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3, hourCycle: "h23" },
  };
  try {
    return new Intl.DateTimeFormat("en-GB", zone === "local" ? options : { ...options, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat("en-GB", options);
  }
}
