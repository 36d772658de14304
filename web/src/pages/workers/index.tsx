import { Cpu } from "lucide-react";
import { Ago } from "../../ui/Ago";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { Panel } from "../../ui/Panel";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { useSearch } from "../../use/useSearch";
import { Loaded } from "../Loaded";
import { useMarked } from "../useMarked";
import { WorkerCard } from "./WorkerCard";
import { grouped, useWorkers, type Worker } from "./workers";

const LOST_MAX = 50;
const FIRST = { worker: "" };

export default function WorkersPage() {
  const workers = useWorkers();
  const [search] = useSearch(FIRST);
  const groups = workers.data && grouped(workers.data.items);
  return (
    <Page
      title="Workers"
      lead={
        groups &&
        workers.data && (
          <span className="tabular-nums">
            {groups.alive.length} at work · {workers.data.engines} {workers.data.engines === 1 ? "engine" : "engines"}
          </span>
        )
      }
    >
      <Loaded query={workers} rows={6}>
        {({ items, as_of }) => {
          const ahead = Date.parse(as_of) - workers.dataUpdatedAt;
          const { alive, lost } = grouped(items);
          return (
            <div className="flex flex-col gap-4 px-4 pb-6">
              {search.worker !== "" && !items.some((one) => one.id === search.worker) && (
                <p role="status" className="rounded-lg border border-line bg-panel px-4 py-2 text-dim">
                  Worker <code className="break-all font-mono text-[12px]">{search.worker}</code> is not here any more:
                  it was stopped, or lost more than a day ago.
                </p>
              )}
              {alive.length === 0 ? (
                <Empty
                  icon={Cpu}
                  title="No workers"
                  line={
                    lost.length === 0
                      ? "Jobs wait until a worker runs. Start one:"
                      : "All workers are lost, and jobs wait until a worker runs:"
                  }
                  command="windlass worker app.py"
                />
              ) : (
                <div className="grid grid-cols-[repeat(auto-fill,minmax(min(100%,340px),1fr))] items-start gap-3">
                  {alive.map((worker) => (
                    <WorkerCard key={worker.id} worker={worker} ahead={ahead} isMarked={worker.id === search.worker} />
                  ))}
                </div>
              )}
              {lost.length > 0 && <LostTable workers={lost} marked={search.worker} />}
            </div>
          );
        }}
      </Loaded>
    </Page>
  );
}

function LostTable({ workers, marked }: { readonly workers: readonly Worker[]; readonly marked: string }) {
  const isMarked = (worker: Worker): boolean => worker.id === marked;
  // The worker that the address names is shown, however many were lost since.
  const shown = workers.filter((worker, i) => i < LOST_MAX || isMarked(worker));
  const box = useMarked<HTMLDivElement>(workers.some(isMarked));
  return (
    <div ref={box}>
      <Panel title="Lost" lead={`${workers.length.toLocaleString("en")} in the last day; their steps moved to others`}>
        <Table aria-label="Lost workers">
          <thead>
            <tr>
              <Th>Worker</Th>
              <Th>Queues</Th>
              <Th className="text-right">Started</Th>
              <Th className="text-right">Last heartbeat</Th>
              <Th className="text-right">Lost</Th>
            </tr>
          </thead>
          <tbody>
            {shown.map((worker) => (
              <Tr key={worker.id} isSelected={isMarked(worker) || undefined}>
                <Td className="whitespace-nowrap">
                  {worker.host}
                  <span className="text-dim tabular-nums">:{worker.pid}</span>
                </Td>
                <Td className="max-w-64 truncate font-mono text-[12px] text-dim">{worker.queues.join(", ")}</Td>
                <Td className="text-right text-dim">
                  <Ago at={worker.started_at} />
                </Td>
                <Td className="text-right text-dim">
                  <Ago at={worker.seen_at} />
                </Td>
                <Td className="text-right">
                  <Ago at={worker.lost_at} />
                </Td>
              </Tr>
            ))}
          </tbody>
        </Table>
      </Panel>
    </div>
  );
}
