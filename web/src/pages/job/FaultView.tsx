import { CircleX } from "lucide-react";
import { Copy } from "../../ui/Copy";
import type { Fault, Link } from "./fault";

interface FaultViewProps {
  readonly fault: Fault;
  /** Whose it is: a page may show the job's and a step's. */
  readonly of: string;
}

/** What happened, what caused it, and where: the last folded, for most people want only the first. */
export function FaultView({ fault, of }: FaultViewProps) {
  const [seen, ...causes] = fault.chain;
  const all = [fault.kind && `${fault.kind}: `, fault.message, "\n", ...fault.chain.map((link) => `\n${link.frames}`)];
  return (
    <section aria-label={`Error of ${of}`} className="rounded-lg border border-danger/40 bg-danger/8">
      <div className="flex items-start gap-2 px-3 pt-2.5 pb-2">
        <CircleX size={15} aria-hidden="true" className="mt-0.5 shrink-0 text-danger" />
        <div className="min-w-0 flex-1">
          <p className="whitespace-pre-wrap break-words font-medium">{fault.message}</p>
          <p className="mt-0.5 break-all font-mono text-[11px] text-dim">
            {fault.code}
            {fault.kind !== "" && ` · ${fault.kind}`}
          </p>
        </div>
        <Copy text={all.join("")} label="Copy the error" />
      </div>
      {causes.length > 0 && (
        <ol aria-label="Causes" className="border-danger/20 border-t px-3 py-2">
          {causes.map((link) => (
            <li key={link.title + link.frames} className="border-danger/30 border-l-2 py-0.5 pl-2.5">
              <span className="text-[11px] text-dim">{link.joined}</span>
              <p className="whitespace-pre-wrap break-words">{link.title || "an error without a message"}</p>
              <Frames link={link} />
            </li>
          ))}
        </ol>
      )}
      {seen !== undefined && seen.frames !== "" && (
        <div className="border-danger/20 border-t px-3 py-1.5">
          <Frames link={seen} />
        </div>
      )}
    </section>
  );
}

function Frames({ link }: { readonly link: Link }) {
  if (link.frames === "") return null;
  return (
    <details>
      <summary className="cursor-pointer text-[12px] text-dim hover:text-fg">Traceback</summary>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key
        tabIndex={0}
        className="mt-1 max-h-72 overflow-auto rounded bg-field p-2 font-mono text-[11px] leading-[1.5]"
      >
        {link.frames}
      </pre>
    </details>
  );
}
