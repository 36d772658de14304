import { type UseMutationResult, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { ask } from "../../api/client";
import type { Submission } from "../../form/submitText";

export interface Submitted {
  readonly job_id: string;
  readonly is_new: boolean;
}

/**
 * Make the job. Every submission has a key, one of its own if none was given, and keeps it while it says the same: sent
 * again after an answer that was lost, it gives the job that is there already.
 */
export function useSubmit(): UseMutationResult<Submitted, Error, Submission> {
  const queries = useQueryClient();
  const own = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn: (wanted) => {
      const text = JSON.stringify(wanted);
      if (own.current.text !== text) own.current = { text, key: freshKey() };
      const { key = own.current.key, ...body } = wanted;
      return ask<Submitted>("/jobs", { method: "POST", body, headers: { "Idempotency-Key": key } });
    },
    onSuccess: (_job, wanted) => {
      own.current = { text: "", key: "" };
      void queries.invalidateQueries({ queryKey: ["recipes", wanted.recipe, "inputs"] });
    },
  });
}

/** Not `randomUUID`, which a page that came over plain http does not have. */
function freshKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `console-${[...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
