import type { WaitWord } from "./api/schemas";

const WAITS: Readonly<Record<WaitWord, string>> = {
  paused: "the job is paused",
  slot: "waits for a slot",
  route: "waits for the engine",
  attempt: "waits for attempts of the job that it undoes",
  ask: "waits for a person to allow the undo",
  retry: "retries soon",
  snooze: "runs again later",
  timer: "sleeps",
  fan: "waits for its children",
  child: "waits for its child job",
  external: "waits for a provider",
  event: "waits for an event",
  approval: "waits for an approval",
  policy: "held by the policy",
  budget: "held by a budget",
};

/** What a step or a job waits for, in a few words. `event:approved` names the event that the step waits for. */
export function waitText(waitingFor: string): string {
  const [kind, what] = split(waitingFor);
  const word = kind.split(",")[0] ?? "";
  if (what !== "" && (word === "event" || word === "external")) return `waits for ${what}`;
  if (word === "budget") return budgetText(what);
  return isWord(word) ? WAITS[word] : `waits for ${waitingFor}`;
}

/** Whether `waiting_for` has this word: as its wait, or as one of its holds (`paused,slot`). */
export function waitsFor(waitingFor: string | null | undefined, word: WaitWord): boolean {
  return split(waitingFor ?? "")[0]
    .split(",")
    .includes(word);
}

/** `recipe:card`: the scope of a budget and its name. The name of a job's own budget is the job's id. */
function budgetText(budget: string): string {
  const [scope, name] = split(budget);
  if (scope === "job") return "held by the job's budget";
  return name === "" ? WAITS.budget : `held by the budget of ${scope} ${name}`;
}

function isWord(text: string): text is WaitWord {
  return Object.hasOwn(WAITS, text);
}

function split(text: string): [string, string] {
  const colon = text.indexOf(":");
  return colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
}
