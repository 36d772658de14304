import { Download } from "lucide-react";
import { Json } from "../../ui/Json";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { bytesText, useValue } from "./useValue";

interface ValueViewProps {
  readonly path: string;
  readonly name: string;
  /** What the file is called. */
  readonly file: string;
  /** Said when there is none. */
  readonly none: string;
}

/** A value of the job: shown, copied, downloaded; a large one by its beginning only. */
export function ValueView({ path, name, file, none }: ValueViewProps) {
  const { data, error, refetch } = useValue(path);
  if (error !== null) return <ProblemView problem={error} onRetry={refetch} />;
  if (data === undefined) return <Skeleton rows={2} label={`Loading ${name}`} />;
  if (data.kind === "none") return <p className="text-dim">{none}</p>;
  return (
    <div className="flex min-w-0 flex-col gap-1.5">
      {data.kind === "whole" ? (
        <Json value={data.value} label={name} />
      ) : (
        <figure aria-label={name} className="m-0 rounded-lg border border-line bg-field">
          <pre
            // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key
            tabIndex={0}
            className="max-h-[24vh] overflow-auto whitespace-pre-wrap break-all p-3 font-mono text-[12px]"
          >
            {data.text.slice(0, 2_000)}
          </pre>
          <figcaption className="border-line border-t px-3 py-1.5 text-[12px] text-dim">
            The beginning of {bytesText(data.size)}. Download it to see the rest.
          </figcaption>
        </figure>
      )}
      <a
        href={path}
        download={file}
        className="inline-flex items-center gap-1 self-start text-[12px] text-accent hover:underline"
      >
        <Download size={12} aria-hidden="true" />
        Download {bytesText(data.size)}
      </a>
    </div>
  );
}
