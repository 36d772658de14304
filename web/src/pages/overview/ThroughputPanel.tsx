import { ChartColumn, Table2 } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { color } from "../../state";
import { IconButton } from "../../ui/IconButton";
import { Panel } from "../../ui/Panel";
import { Table, Td, Th, Tr } from "../../ui/Table";
import { minuteText, useClock } from "./clock";
import { sum, type Throughput } from "./overview";

// Only this page needs uPlot, and the page is shown before it is loaded.
const Chart = lazy(() => import("./Chart"));

/** Jobs that ended in the last hour, minute by minute: as bars, and as a table for screen readers. */
export function ThroughputPanel({
  throughput,
  className,
}: {
  readonly throughput: Throughput;
  readonly className?: string;
}) {
  const zone = useClock();
  const [isTable, setTable] = useState(false);
  const [index, setIndex] = useState<number | null>(null);
  const [completed, failed] = [sum(throughput.completed), sum(throughput.failed)];
  const at = index === null ? undefined : throughput.minutes[index];
  return (
    <Panel
      title="Throughput"
      className={className ?? ""}
      lead={
        at === undefined ? "last hour, jobs per minute" : <span className="tabular-nums">{minuteText(at, zone)}</span>
      }
      actions={
        <>
          <Legend
            look="succeeded"
            word="completed"
            count={at === undefined ? completed : (throughput.completed[index ?? 0] ?? 0)}
          />
          <Legend
            look="failed"
            word="failed"
            count={at === undefined ? failed : (throughput.failed[index ?? 0] ?? 0)}
          />
          <IconButton label={isTable ? "Show bars" : "Show a table"} onClick={() => setTable(!isTable)}>
            {isTable ? <ChartColumn size={14} aria-hidden="true" /> : <Table2 size={14} aria-hidden="true" />}
          </IconButton>
        </>
      }
    >
      {isTable ? (
        <Minutes throughput={throughput} />
      ) : (
        <figure className="relative m-0 min-h-[176px] flex-1">
          <figcaption className="sr-only">
            In the last hour {completed} jobs completed and {failed} failed. “Show a table” gives every minute.
          </figcaption>
          <Suspense>
            <Chart throughput={throughput} onPoint={setIndex} />
          </Suspense>
        </figure>
      )}
    </Panel>
  );
}

function Legend({
  look,
  word,
  count,
}: {
  readonly look: "succeeded" | "failed";
  readonly word: string;
  readonly count: number;
}) {
  return (
    <span className="flex items-center gap-1.5 text-[12px] text-dim">
      <span aria-hidden="true" className="size-2 rounded-[2px]" style={{ background: color(look) }} />
      <span className="font-medium text-fg tabular-nums">{count.toLocaleString("en")}</span>
      {word}
    </span>
  );
}

function Minutes({ throughput }: { readonly throughput: Throughput }) {
  const zone = useClock();
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key
    <div className="h-[176px] flex-auto overflow-y-auto" tabIndex={0}>
      <Table aria-label="Jobs that ended, by minute">
        <thead className="sticky top-0 bg-panel">
          <tr>
            <Th>Minute</Th>
            <Th className="text-right">Completed</Th>
            <Th className="text-right">Failed</Th>
          </tr>
        </thead>
        <tbody>
          {throughput.minutes
            .map((at, i) => ({ at, i }))
            .reverse()
            .map(({ at, i }) => (
              <Tr key={at}>
                <Td className="tabular-nums">{minuteText(at, zone)}</Td>
                <Td className="text-right tabular-nums">{throughput.completed[i]}</Td>
                <Td className="text-right tabular-nums">{throughput.failed[i]}</Td>
              </Tr>
            ))}
        </tbody>
      </Table>
    </div>
  );
}
