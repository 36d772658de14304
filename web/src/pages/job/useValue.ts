import { useQuery } from "@tanstack/react-query";
import { Problem, type ProblemBody } from "../../api/client";

/** More than this is not read on a page: it is downloaded. */
const SHOWN_BYTES = 262_144;

export type Value =
  | { readonly kind: "whole"; readonly value: unknown; readonly size: number }
  /** The first part of a large one, as text. */
  | { readonly kind: "part"; readonly text: string; readonly size: number }
  | { readonly kind: "none" };

/** An input or output, as much of it as can be looked at. */
export function useValue(path: string | null) {
  return useQuery({
    queryKey: ["value", path],
    queryFn: ({ signal }) => read(path as string, signal),
    enabled: path !== null,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });
}

async function read(path: string, signal: AbortSignal): Promise<Value> {
  const headers = { Accept: "application/json", Range: `bytes=0-${SHOWN_BYTES - 1}` };
  const answer = await fetch(path, { headers, credentials: "same-origin", signal });
  // Nothing is there yet, or never will be: that is an answer and not a failure.
  if (answer.status === 404 || answer.status === 409 || answer.status === 416) return { kind: "none" };
  if (!answer.ok) throw new Problem((await answer.json()) as ProblemBody);
  const text = await answer.text();
  const size = sizeOf(answer.headers.get("Content-Range")) ?? text.length;
  if (answer.status === 206 && size > SHOWN_BYTES) return { kind: "part", text, size };
  return { kind: "whole", value: text === "" ? null : (JSON.parse(text) as unknown), size };
}

/** `bytes 0-99/1234` */
export function sizeOf(range: string | null): number | undefined {
  const found = /\/(\d+)$/.exec(range ?? "");
  return found === null ? undefined : Number(found[1]);
}

export function bytesText(size: number): string {
  if (size < 1_000) return `${size} B`;
  if (size < 1_000_000) return `${(size / 1_000).toFixed(1)} kB`;
  return `${(size / 1_000_000).toFixed(1)} MB`;
}
