import { ChevronRight } from "lucide-react";
import { Link } from "wouter";
import { shortId } from "../../shortId";
import { Ago } from "../../ui/Ago";
import { Copy } from "../../ui/Copy";
import { Json } from "../../ui/Json";
import { Td, Tr } from "../../ui/Table";
import type { AuditRecord } from "./records";
import { detailOf, type Tone, wordOf } from "./words";

interface RecordRowProps {
  readonly record: AuditRecord;
  readonly isOpen: boolean;
  readonly onToggle: () => void;
  readonly onCaller: (caller: string) => void;
}

const TONES: Readonly<Record<Tone, string>> = {
  plain: "text-dim",
  good: "text-good",
  bad: "text-danger",
  care: "text-accent",
};

export function RecordRow({ record, isOpen, onToggle, onCaller }: RecordRowProps) {
  const { word, tone } = wordOf(record.event);
  return (
    <>
      <Tr isSelected={isOpen || undefined}>
        <Td className="w-0 whitespace-nowrap">
          <button
            type="button"
            aria-expanded={isOpen}
            aria-label={`Record ${record.no}`}
            onClick={onToggle}
            className="flex cursor-pointer items-center gap-1 text-dim tabular-nums hover:text-fg"
          >
            <ChevronRight size={13} aria-hidden="true" className={isOpen ? "rotate-90" : ""} />
            <span className="hidden sm:inline">{record.no}</span>
          </button>
        </Td>
        <Td className="w-0 whitespace-nowrap">
          <Ago at={record.at} />
        </Td>
        <Td className="max-w-40 truncate">
          {record.caller === null ? (
            <span className="text-dim">the engine</span>
          ) : (
            <button
              type="button"
              className="max-w-full cursor-pointer truncate hover:text-accent hover:underline"
              onClick={() => onCaller(record.caller ?? "")}
            >
              {record.caller}
            </button>
          )}
        </Td>
        <Td className="whitespace-nowrap">
          <span className="flex items-center gap-2">
            <span aria-hidden="true" className={`size-1.5 rounded-full bg-current ${TONES[tone]}`} />
            {word}
          </span>
        </Td>
        <Td className="whitespace-nowrap">
          {record.job_id === null ? (
            <span className="text-dim">–</span>
          ) : (
            <Link href={`/jobs/${record.job_id}`} className="font-mono text-[12px] text-accent hover:underline">
              {shortId(record.job_id)}
            </Link>
          )}
        </Td>
        <Td className="max-w-80 truncate text-dim">{detailOf(record)}</Td>
        <Td className="max-w-44 truncate font-mono text-[11px] text-dim">{record.request_id ?? "–"}</Td>
      </Tr>
      {isOpen && (
        <tr className="border-line/70 border-b bg-panel2/40">
          <td colSpan={7} className="px-4 py-3">
            <Opened record={record} />
          </td>
        </tr>
      )}
    </>
  );
}

function Opened({ record }: { readonly record: AuditRecord }) {
  const facts: readonly (readonly [string, string | null])[] = [
    ["at", record.at],
    ["event", record.event],
    ["caller", [record.caller, record.caller_type, record.tier].filter(Boolean).join(" · ") || null],
    ["job", record.job_id],
    ["request", record.request_id],
    ["hash", record.hash],
  ];
  return (
    <div className="flex max-w-[calc(100vw-32px)] flex-col gap-2.5 lg:max-w-3xl">
      <dl className="grid grid-cols-[auto_1fr] items-center gap-x-4">
        {facts.map(
          ([name, value]) =>
            value !== null && (
              <div key={name} className="contents">
                <dt className="text-dim">{name}</dt>
                <dd className="flex min-w-0 items-center gap-1 font-mono text-[12px]">
                  <span className="truncate">{value}</span>
                  <Copy text={value} label={`Copy the ${name}`} />
                </dd>
              </div>
            ),
        )}
      </dl>
      <Json value={record.payload} label="Payload" />
    </div>
  );
}
