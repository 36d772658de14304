import { useEffect, useState } from "react";
import type { Folded } from "./fold";
import { type Layout, type LayoutInput, layered } from "./layered";
import type { Direction } from "./types";

/** A graph of this size is laid out sooner than a worker has started. */
const AT_ONCE_MAX = 150;

interface Waiting {
  readonly input: LayoutInput;
  readonly resolve: (layout: Layout) => void;
}

let worker: Worker | null = null;
let isBroken = false;
let asked = 0;
const waiting = new Map<number, Waiting>();

function startWorker(): Worker {
  const started = new Worker(new URL("./layout.worker.ts", import.meta.url), { type: "module" });
  started.onmessage = ({ data }: MessageEvent<{ id: number; layout: Layout }>) => {
    waiting.get(data.id)?.resolve(data.layout);
    waiting.delete(data.id);
  };
  // A page that cannot load its worker, such as one of a release that is gone, halts for a moment and still shows it.
  started.onerror = () => {
    isBroken = true;
    for (const { input, resolve } of waiting.values()) resolve(layered(input));
    waiting.clear();
  };
  return started;
}

function inWorker(input: LayoutInput): Promise<Layout> {
  if (isBroken) return Promise.resolve(layered(input));
  worker ??= startWorker();
  const id = ++asked;
  worker.postMessage({ id, input });
  return new Promise((resolve) => waiting.set(id, { input, resolve }));
}

export interface LaidOut {
  readonly folded: Folded;
  readonly layout: Layout;
}

/** The layout of what is shown now; until it is there, the one before, together with what that one was of. */
export function useLayout(
  folded: Folded,
  view: { readonly width: number; readonly height: number } | null,
  direction: Direction | undefined,
): LaidOut | null {
  const [found, setFound] = useState<LaidOut | null>(null);
  // A window that is resized keeps its layout: steps that jump are worse than a little room.
  const hasView = view !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: the size matters only when something is laid out
  useEffect(() => {
    if (view === null) return;
    const sizes = new Float32Array(2 * folded.vertices.length);
    folded.vertices.forEach((vertex, i) => {
      sizes.set([vertex.width, vertex.height], 2 * i);
    });
    const input: LayoutInput = { vertices: folded.vertices.length, pairs: folded.pairs, sizes, view, direction };
    if (input.vertices <= AT_ONCE_MAX) {
      setFound({ folded, layout: layered(input) });
      return;
    }
    let isWanted = true;
    inWorker(input).then((layout) => isWanted && setFound({ folded, layout }));
    return () => {
      isWanted = false;
    };
  }, [folded, direction, hasView]);
  return found;
}
