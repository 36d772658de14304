import { useEffect, useRef, useState } from "react";
import { jobLook, saidOf, wordOf } from "../../state";
import type { JobLive } from "./jobLive";
import { useJob } from "./useJobLive";

/** Announces changes of the job's state to screen readers; steps are left out, because there would be too many. */
export function Announcer({ live }: { readonly live: JobLive }) {
  const job = useJob(live);
  const word = saidOf(job.status) ?? wordOf(jobLook(job.status));
  const at = job.failed_step === null ? "" : ` at ${job.failed_step}`;
  const text = job.is_paused ? "The job is paused" : `The job is ${word.toLowerCase()}${at}`;
  const first = useRef(text);
  const [said, setSaid] = useState("");
  useEffect(() => {
    // What the page opened with is read from the header: only changes are news.
    if (text !== first.current) setSaid(text);
  }, [text]);
  return (
    <p role="status" aria-live="polite" className="sr-only">
      {said}
    </p>
  );
}
