import { ask, problemOf } from "../../api/client";
import type { Schemas } from "../../api/schemas";
import { toast } from "../../ui/toast";
import { freshKey } from "./key";

type Taken = Schemas["EventTaken"];

const SAID: Readonly<Record<Taken["status"], (name: string) => string>> = {
  delivered: (name) => `“${name}” was delivered`,
  kept: (name) => `“${name}” is kept until a step waits for it`,
  already: (name) => `“${name}” was sent before`,
};

/** Send the job an event. Answers whether the server has it. */
export async function sendEvent(id: string, name: string, body: unknown): Promise<boolean> {
  try {
    const headers = { "Idempotency-Key": freshKey() };
    const taken = await ask<Taken>(`/jobs/${id}/events`, { method: "POST", body: { name, body }, headers });
    toast((SAID[taken.status] ?? SAID.kept)(name), { kind: "good" });
    return true;
  } catch (error) {
    const { title, detail } = problemOf(error).body;
    toast([title, detail].filter(Boolean).join(". "), { kind: "bad" });
    return false;
  }
}
