import { DEFAULT_QUEUES } from "../../queues";
import { Panel } from "../../ui/Panel";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { lasted } from "../../ui/time";
import type { QueueState } from "./overview";

const OLD_S = 60;
/** Where steps go that name no queue. */
const USUAL = "main_processing";

/** Each queue: what could start, what runs, and how long the first in line has waited. */
export function QueueTable({
  queues,
  className,
}: {
  readonly queues: readonly QueueState[];
  readonly className?: string;
}) {
  return (
    <Panel title="Queues" className={className ?? ""}>
      {queues.length === 0 ? (
        <p className="px-4 py-6 text-center text-dim">No step is waiting or running.</p>
      ) : (
        <Table aria-label="Queues">
          <thead>
            <tr>
              <Th>Queue</Th>
              <Th className="text-right">Ready</Th>
              <Th className="text-right">Running</Th>
              <Th className="text-right">Workers</Th>
              <Th className="text-right">Oldest</Th>
            </tr>
          </thead>
          <tbody>
            {busyFirst(queues).map((one) => (
              <Tr key={one.queue}>
                <Td className="max-w-44 truncate font-mono text-[12px]">{one.queue}</Td>
                <Count many={one.ready} />
                <Count many={one.running} />
                <Td className={`text-right tabular-nums ${one.workers === 0 ? "font-medium text-danger" : ""}`}>
                  {one.workers === 0 ? "none" : one.workers}
                </Td>
                <Td
                  className={`whitespace-nowrap text-right tabular-nums ${one.oldest_s > OLD_S ? "font-medium text-danger" : ""}`}
                >
                  {one.ready === 0 ? <span className="text-dim">–</span> : lasted(one.oldest_s * 1_000)}
                </Td>
              </Tr>
            ))}
          </tbody>
        </Table>
      )}
    </Panel>
  );
}

function Count({ many }: { readonly many: number }) {
  return <Td className={`text-right tabular-nums ${many === 0 ? "text-dim" : ""}`}>{many.toLocaleString("en")}</Td>;
}

/** Busy ones first. Empty queues that every worker takes from are left out. */
function busyFirst(queues: readonly QueueState[]): readonly QueueState[] {
  const isIdle = (one: QueueState): boolean => one.ready + one.running === 0;
  const isTold = (one: QueueState): boolean =>
    !isIdle(one) || one.queue === USUAL || !DEFAULT_QUEUES.includes(one.queue);
  return queues.filter(isTold).sort((a, b) => Number(isIdle(a)) - Number(isIdle(b)));
}
