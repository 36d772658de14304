import { Link } from "wouter";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Lasted } from "../../ui/Lasted";
import { Row } from "./Row";
import type { StepWork } from "./types";

/** Work that a provider has in hand, or had. */
export function WorkFacts({ work }: { readonly work: StepWork }) {
  return (
    <dl className="grid grid-cols-[auto_minmax(0,1fr)] items-center gap-x-4 gap-y-1.5">
      <Row name="Provider">
        <Link href="/providers" className="text-accent hover:underline">
          {work.provider}
        </Link>
      </Row>
      {work.external_id !== null && (
        <Row name="Provider's id">
          <span className="flex min-w-0 items-center">
            <code className="min-w-0 truncate font-mono text-[11px]" data-tip={work.external_id}>
              {work.external_id}
            </code>
            <Copy text={work.external_id} label="Copy the provider's id" />
          </span>
        </Row>
      )}
      <Row name="Stands at">
        {work.state}
        {work.status !== null && <span className="text-dim"> · it says {work.status}</span>}
      </Row>
      {work.submitted_at !== null && (
        <Row name={work.ended_at === null ? "For" : "Took"}>
          <Lasted from={work.submitted_at} to={work.ended_at} />
        </Row>
      )}
      <Row name="Asked">
        {work.polls === 1 ? "once" : `${work.polls} times`}
        {work.next_poll_at !== null && work.ended_at === null && (
          <span className="text-dim">
            {" · next "}
            <Ago at={work.next_poll_at} />
          </span>
        )}
      </Row>
    </dl>
  );
}
