/** What can be done to the job, by button, menu and key alike: each with why it cannot be done now. */
import { createContext, lazy, type ReactNode, Suspense, useContext, useRef, useState } from "react";
import { useLocation } from "wouter";
import { ask, problemOf } from "../../api/client";
import { mermaidOf } from "../../graph/mermaid";
import { isOver, jobLook } from "../../state";
import { copyText } from "../../ui/Copy";
import { toast } from "../../ui/toast";
import { useSession } from "../../use/useSession";
import type { Again } from "./copyAs";
import type { Asking } from "./Dialogs";
import type { JobLive } from "./jobLive";
import { freshKey } from "./key";
import type { JobAccepted } from "./types";
import { useJob } from "./useJobLive";

export interface Act {
  readonly run: () => void;
  readonly why: string | undefined;
}

export interface Acts {
  readonly retry: Act;
  readonly rerun: Act & { readonly from: (step: string | null) => void };
  readonly cancel: Act;
  readonly pause: Act;
  readonly remove: Act;
  readonly copyLink: () => void;
  readonly copyAs: (what: "cli" | "curl" | "python") => void;
  readonly copyMermaid: () => void;
  readonly isBusy: boolean;
  readonly dialog: ReactNode;
}

const Dialogs = lazy(() => import("./Dialogs"));

export const ActsContext = createContext<Acts | null>(null);

export function useActsHere(): Acts {
  const acts = useContext(ActsContext);
  if (acts === null) throw new Error("there is no job around this part of the page");
  return acts;
}

export function useActs(id: string, live: JobLive): Acts {
  const job = useJob(live);
  const session = useSession();
  const [, go] = useLocation();
  const [asking, setAsking] = useState<Asking | null>(null);
  const [isBusy, setBusy] = useState(false);
  // State is set too late to stop a second press of the same moment.
  const busy = useRef(false);
  const over = isOver(job.status);
  const may = session.can("jobs:write") ? undefined : "Your key may only read jobs";
  const path = `/jobs/${id}`;

  const during = async (work: () => Promise<void>): Promise<void> => {
    if (busy.current) return;
    busy.current = true;
    setBusy(true);
    try {
      await work();
    } catch (error) {
      const { title, detail, request_id } = problemOf(error).body;
      toast([title, detail, request_id && `Request ${request_id}`].filter(Boolean).join(". "), { kind: "bad" });
    } finally {
      busy.current = false;
      setBusy(false);
    }
  };
  const opened = (made: JobAccepted, what: string): void => {
    toast(`${what}: this is the new job`, { kind: "good", action: { label: "Back", onPress: () => go(path) } });
    go(`/jobs/${made.job_id}`);
  };
  const act = (run: () => void, ...whys: (string | undefined)[]): Act => ({
    run,
    why: [may, ...whys].find((why) => why !== undefined),
  });

  const retry = (): Promise<void> =>
    during(async () => {
      const headers = { "Idempotency-Key": freshKey() };
      opened(await ask<JobAccepted>(`${path}/retry`, { method: "POST", body: {}, headers }), "Retried");
    });
  const pause = (): Promise<void> =>
    during(async () => {
      await ask(`${path}/${job.is_paused ? "resume" : "pause"}`, { method: "POST" });
      toast(job.is_paused ? "The job continues" : "Paused: running steps finish, no other step starts", {
        kind: "good",
      });
    });
  const copyAs = (what: "cli" | "curl" | "python"): Promise<void> =>
    during(async () => {
      const { recipe, recipe_version: version, labels, priority } = job;
      const again: Again = { recipe, version, labels, priority, inputs: await inputsText(id) };
      const { asCli, asCurl, asPython } = await import("./copyAs");
      const [text, name] = {
        cli: [asCli(again, location.origin), "command"] as const,
        curl: [asCurl(again, location.origin), "cURL"] as const,
        python: [asPython(again, location.origin), "Python"] as const,
      }[what];
      if (await copyText(text)) toast(`Copied as ${name}`, { kind: "good" });
    });
  const copied = async (text: string, what: string): Promise<void> => {
    if (await copyText(text)) toast(`${what} copied`, { kind: "good" });
  };
  const from = (step: string | null): void => setAsking({ kind: "rerun", from: step });

  const isBad = over && jobLook(job.status) !== "succeeded";
  return {
    retry: act(
      () => void retry(),
      !over ? "The job is not over yet" : undefined,
      isBad ? undefined : "Nothing failed: run it again instead",
    ),
    rerun: { ...act(() => from(null), over ? undefined : "The job is not over yet"), from },
    cancel: act(() => setAsking({ kind: "cancel" }), over ? "The job is over" : undefined),
    pause: act(() => void pause(), over ? "The job is over" : undefined),
    remove: act(
      () => setAsking({ kind: "remove" }),
      over ? undefined : "Only a job that is over can be deleted",
      job.deleted_at === null ? undefined : "The job is already deleted",
    ),
    copyLink: () => void copied(`${location.origin}${location.pathname}${location.search}`, "Link"),
    copyAs: (what) => void copyAs(what),
    copyMermaid: () => void copied(mermaidOf(live.structure(), live.graph, "right"), "Mermaid"),
    isBusy,
    dialog: asking !== null && (
      <Suspense>
        <Dialogs id={id} live={live} asking={asking} onClose={() => setAsking(null)} onMade={opened} />
      </Suspense>
    ),
  };
}

/** As text: a number in it may be longer than a page can count. */
async function inputsText(id: string): Promise<string> {
  const answer = await fetch(`/jobs/${id}/input`, { credentials: "same-origin" });
  if (!answer.ok) await ask(`/jobs/${id}/input`);
  return answer.text();
}
