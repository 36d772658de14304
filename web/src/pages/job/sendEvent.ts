import { ask, problemOf } from "../../api/client";
import { toast } from "../../ui/toast";
import { freshKey } from "./key";

interface Taken {
  readonly status: string;
}

/** Tell the job something that one of its steps waits for. Answers whether the server has it. */
export async function sendEvent(id: string, name: string, body: unknown): Promise<boolean> {
  try {
    const headers = { "Idempotency-Key": freshKey() };
    const taken = await ask<Taken>(`/jobs/${id}/events`, { method: "POST", body: { name, body }, headers });
    // Somebody else was quicker, or the step is not there yet: either way it is not lost.
    const said =
      taken.status === "delivered" ? `“${name}” was delivered` : `“${name}” is kept until a step asks for it`;
    toast(said, { kind: "good" });
    return true;
  } catch (error) {
    const { title, detail } = problemOf(error).body;
    toast([title, detail].filter(Boolean).join(". "), { kind: "bad" });
    return false;
  }
}
