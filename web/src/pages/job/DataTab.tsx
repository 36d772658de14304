import { isOver } from "../../state";
import { Panel } from "../../ui/Panel";
import { FaultView } from "./FaultView";
import { faultOf } from "./fault";
import type { TabProps } from "./JobView";
import { useJob } from "./useJobLive";
import { ValueView } from "./ValueView";

/** What went in, and what came out or why nothing did. */
export default function DataTab({ id, live }: TabProps) {
  const job = useJob(live);
  const fault = faultOf(job.error);
  const isDone = job.status === "COMPLETED";
  return (
    <div className="h-full overflow-y-auto p-4">
      <div className="grid max-w-[1600px] gap-4 lg:grid-cols-2">
        <Panel title="Input" lead="as it was checked, defaults filled in" className="self-start">
          <div className="p-4">
            <ValueView path={`/jobs/${id}/input`} name="input" file={`${job.recipe}-input.json`} none="It has none." />
          </div>
        </Panel>
        <Panel title="Output" className="self-start">
          <div className="p-4">
            {isDone ? (
              <ValueView
                path={`/jobs/${id}/output`}
                name="output"
                file={`${job.recipe}-output.json`}
                none="The recipe returned nothing."
              />
            ) : fault !== null ? (
              <FaultView fault={fault} of="the job" />
            ) : (
              <p className="text-dim">
                {isOver(job.status)
                  ? "The job ended without an output."
                  : "The job has no output before it succeeds. Finished steps show their outputs already."}
              </p>
            )}
          </div>
        </Panel>
      </div>
    </div>
  );
}
