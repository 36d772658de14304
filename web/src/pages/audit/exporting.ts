/** The records that fit a filter as a file: one JSON document a line, the newest first. */
import { ask } from "../../api/client";
import { type Filter, queryOf, type RecordPage } from "./records";

export const EXPORT_MAX = 20_000;
const PAGE = 500;

export interface Exported {
  readonly lines: readonly string[];
  /** Whether there are more than are exported at once. */
  readonly isCapped: boolean;
}

type Read = (query: string) => Promise<RecordPage>;

const readPage: Read = (query) => ask<RecordPage>(`/audit?${query}`);

/** Read page after page, as far as the limit goes. What "the last day" means is settled once, at the beginning. */
export async function exportRecords(
  filter: Filter,
  now: number,
  most = EXPORT_MAX,
  read = readPage,
): Promise<Exported> {
  const lines: string[] = [];
  let before: number | null = null;
  while (lines.length < most) {
    const page: RecordPage = await read(queryOf(filter, before, now, Math.min(PAGE, most - lines.length)));
    for (const record of page.items) lines.push(JSON.stringify(record));
    if (page.next === null || page.items.length === 0 || page.next === before) return { lines, isCapped: false };
    before = page.next;
  }
  return { lines, isCapped: true };
}

export function download(name: string, lines: readonly string[]): void {
  const url = URL.createObjectURL(new Blob([`${lines.join("\n")}\n`], { type: "application/x-ndjson" }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // The browser has taken hold of it once the click is over.
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
