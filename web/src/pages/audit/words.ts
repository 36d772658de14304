/** What a record of the audit says, in words. */

import type { AuditEvent } from "../../api/schemas";

interface Told {
  readonly event: string;
  readonly payload: unknown;
}

export type Tone = "plain" | "good" | "bad" | "care";

interface Word {
  readonly word: string;
  readonly tone: Tone;
}

const WORDS: Readonly<Record<AuditEvent, Word>> = {
  job_submitted: { word: "Submitted a job", tone: "plain" },
  job_completed: { word: "Job completed", tone: "good" },
  job_failed: { word: "Job failed", tone: "bad" },
  job_cancelled: { word: "Job cancelled", tone: "plain" },
  job_controlled: { word: "Acted on a job", tone: "care" },
  job_deleted: { word: "Deleted a job", tone: "care" },
  bulk_applied: { word: "Acted on many jobs", tone: "care" },
  rate_limit_hit: { word: "Hit a rate limit", tone: "bad" },
  auth_rejected: { word: "Rejected a key", tone: "bad" },
  key_created: { word: "Created a key", tone: "care" },
  key_revoked: { word: "Revoked a key", tone: "care" },
  caller_adopted: { word: "Took over a caller", tone: "care" },
  webhook_redelivered: { word: "Sent a webhook again", tone: "plain" },
  webhook_dead: { word: "Gave up on a webhook", tone: "bad" },
  provider_event_applied: { word: "Applied a provider's event", tone: "plain" },
  budget_set: { word: "Set a budget", tone: "care" },
  budget_removed: { word: "Removed a budget", tone: "care" },
  console_signed_in: { word: "Signed in to the console", tone: "plain" },
  console_signed_out: { word: "Signed out of the console", tone: "plain" },
  timeline_changed: { word: "Database was failed over", tone: "care" },
  policy_published: { word: "Published a policy", tone: "care" },
  policy_rolled_back: { word: "Rolled a policy back", tone: "care" },
  policy_bypassed: { word: "Ran a job without its kernel", tone: "bad" },
  kernel_set: { word: "Set the kernel that judges jobs", tone: "care" },
  approval_voted: { word: "Voted on an approval", tone: "care" },
  approval_used: { word: "Approval was used", tone: "good" },
  demo_worker_killed: { word: "Killed the demo's worker", tone: "care" },
};

export const EVENTS: readonly string[] = Object.keys(WORDS);

/** An event of a newer server, or of an address that was typed, is told by its own name. */
export function wordOf(event: string): Word {
  return isKnown(event) ? WORDS[event] : { word: sentence(event), tone: "plain" };
}

function isKnown(event: string): event is AuditEvent {
  return Object.hasOwn(WORDS, event);
}

const SHOWN_MAX = 120;

/** The rest in one line: `trailer at render: timeout`, `action retry · expect 9`. */
export function detailOf({ event, payload }: Told): string {
  if (typeof payload !== "object" || payload === null || Array.isArray(payload)) return cut(textOf(payload));
  if (event.startsWith("job_") && "recipe" in payload) return cut(endText(payload));
  const parts = Object.entries(payload)
    .filter(([, value]) => value !== null && value !== "" && value !== undefined)
    .map(([name, value]) => `${name} ${textOf(value)}`);
  return cut(parts.join(" · "));
}

/** How a job of a recipe ended; its state only where the event does not say it. */
function endText(payload: object): string {
  const { recipe, step, code, state } = payload as Record<string, unknown>;
  const place = step === undefined ? textOf(recipe) : `${textOf(recipe)} at ${textOf(step)}`;
  const how = [state === "FAILED" ? "" : textOf(state), textOf(code)].filter((part) => part !== "").join(", ");
  return how === "" ? place : `${place}: ${how}`;
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ");
  return JSON.stringify(value);
}

function cut(text: string): string {
  return text.length <= SHOWN_MAX ? text : `${text.slice(0, SHOWN_MAX - 1)}…`;
}

function sentence(event: string): string {
  const words = event.replaceAll("_", " ").trim();
  return words === "" ? "?" : words.charAt(0).toUpperCase() + words.slice(1);
}
