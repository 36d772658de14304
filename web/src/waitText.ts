const WAITS: Readonly<Record<string, string>> = {
  paused: "the job is paused",
  retry: "tried again soon",
  snooze: "runs again later",
  timer: "sleeps",
  fan: "waits for its children",
  child: "waits for its child job",
  external: "waits for work elsewhere",
  event: "waits to be told",
  slot: "stands in line",
  budget: "held by a budget",
};

/** What a step or a job waits for, in a few words: `event:approved` is somebody who has to say so. */
export function waitText(waitingFor: string): string {
  const [kind, what] = split(waitingFor);
  if (what !== "" && (kind === "event" || kind === "external")) return `waits for ${what}`;
  if (kind === "budget") return budgetText(what);
  return WAITS[kind] ?? `waits for ${waitingFor}`;
}

/** `recipe:card`: the scope of a budget and its name. The name of a job's own budget is the job's id. */
function budgetText(budget: string): string {
  const [scope, name] = split(budget);
  if (scope === "job") return "held by the job's budget";
  return name === "" ? "held by a budget" : `held by the budget of ${scope} ${name}`;
}

function split(text: string): [string, string] {
  const colon = text.indexOf(":");
  return colon < 0 ? [text, ""] : [text.slice(0, colon), text.slice(colon + 1)];
}
