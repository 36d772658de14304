/** An error as people read it: what happened, then what caused it, with the places in the code folded away. */

export interface Fault {
  readonly code: string;
  readonly message: string;
  /** The kind of exception, when a program raised it. */
  readonly kind: string;
  /** The step that failed first, for a job's. */
  readonly step: string;
  /** The last one first: that is what was seen; the next is why. */
  readonly chain: readonly Link[];
}

export interface Link {
  /** `Kind: message`, or nothing when only its frames are known. */
  readonly title: string;
  /** How it led to the one before it. */
  readonly joined: "caused by" | "while handling" | "";
  readonly frames: string;
}

const CAUSE = "The above exception was the direct cause of the following exception:";
const CONTEXT = "During handling of the above exception, another exception occurred:";
const JOINT = new RegExp(`\\n*(${CAUSE}|${CONTEXT})\\n*`);

/** The error of a job or a step; null when it has none. */
export function faultOf(error: unknown): Fault | null {
  if (error === null || error === undefined) return null;
  if (typeof error !== "object") return { code: "error", message: String(error), kind: "", step: "", chain: [] };
  const part = (name: string): string => {
    const value = (error as Record<string, unknown>)[name];
    return typeof value === "string" ? value : "";
  };
  return {
    code: part("code") || "error",
    message: part("message") || part("detail") || part("code") || "No message.",
    kind: part("kind"),
    step: part("step"),
    chain: chainOf(part("detail")),
  };
}

/** Python writes the first cause first and what came of it below; here the last is on top. */
export function chainOf(detail: string): Link[] {
  if (detail.trim() === "") return [];
  const parts = detail.split(JOINT);
  const links: Link[] = [];
  for (let i = 0; i < parts.length; i += 2) {
    const after = parts[i + 1];
    const joined = after === undefined ? "" : after === CAUSE ? "caused by" : "while handling";
    links.push({ ...blockOf(parts[i] as string), joined });
  }
  return links.reverse();
}

/** Frames are indented; the line under them says what was raised, and may go on over several lines. */
function blockOf(block: string): Pick<Link, "title" | "frames"> {
  const lines = block.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("Traceback (most recent"));
  const last = lines.findLastIndex((line) => line.startsWith("  "));
  return {
    title: lines
      .slice(last + 1)
      .join("\n")
      .trim(),
    frames: lines.slice(0, last + 1).join("\n"),
  };
}
