import { FileQuestionMark } from "lucide-react";
import { Link, useParams } from "wouter";
import { shortId } from "../../shortId";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { JobView } from "./JobView";
import { isAway, useJobLive } from "./useJobLive";

export default function Job() {
  const { id = "" } = useParams();
  // Another job is another page: nothing of this one may be seen under its name.
  return <OneJob key={id} id={id} />;
}

function OneJob({ id }: { readonly id: string }) {
  const { live, problem, retry } = useJobLive(id);
  const isGone = problem !== null && isAway(problem);
  if (live !== null && !isGone) return <JobView id={id} live={live} />;
  if (problem === null) return <Loading id={id} />;
  return (
    <Page title={`Job ${shortId(id)}`}>
      {isGone ? (
        <Empty
          icon={FileQuestionMark}
          title="There is no such job"
          line="The job was deleted, belongs to another caller, or its id has a typing error."
          command={`windlass show ${id.slice(0, 40)}`}
          action={
            <Link href="/jobs" className="text-accent underline">
              To all jobs
            </Link>
          }
        />
      ) : (
        <div className="p-4">
          <ProblemView problem={problem} onRetry={retry} />
        </div>
      )}
    </Page>
  );
}

function Loading({ id }: { readonly id: string }) {
  return (
    <Page title="Job" lead={<span className="font-mono text-[12px]">{shortId(id)}</span>} isFull>
      <div className="border-line border-t">
        <Skeleton rows={10} label="Loading the job" />
      </div>
    </Page>
  );
}
