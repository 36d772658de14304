/**
 * How a tab reaches the hub: a SharedWorker; else the tab that leads, found by a lock and reached by a channel; else a hub
 * of its own. uvicorn speaks HTTP/1.1, where a browser opens six connections to a host: a seventh tab with a stream of its
 * own would hang, and everything else that it asks for too.
 */

import { lockManager } from "./presence";
import type { ToHub, ToTab } from "./protocol";

export interface Link {
  readonly kind: "worker" | "channel" | "alone";
  send(message: ToHub): void;
}

export type Hear = (message: ToTab) => void;

/** A worker that says nothing for so long is not there. */
const ANSWER_MS = 4_000;

export async function openLink(tab: string, hear: Hear): Promise<Link> {
  if (typeof SharedWorker !== "undefined") {
    const link = await openWorkerLink(tab, hear).catch(() => null);
    if (link !== null) return link;
  }
  // Few browsers come this far, so the hub is not part of what every tab loads.
  const { openChannelLink, openOwnLink } = await import("./leader");
  const locks = lockManager();
  if (locks !== undefined && typeof BroadcastChannel !== "undefined") return openChannelLink(tab, hear, locks);
  return openOwnLink(tab, hear);
}

function openWorkerLink(tab: string, hear: Hear): Promise<Link> {
  const worker = new SharedWorker(new URL("./hub.worker.ts", import.meta.url), { type: "module", name: "windlass" });
  return new Promise((found, failed) => {
    const send = (message: ToHub): void => worker.port.postMessage({ tab, message });
    const tooLate = setTimeout(() => {
      worker.port.close();
      failed(new Error("the worker does not answer"));
    }, ANSWER_MS);
    worker.onerror = () => {
      clearTimeout(tooLate);
      failed(new Error("the worker cannot be loaded"));
    };
    worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => {
      clearTimeout(tooLate);
      found({ kind: "worker", send });
      hear(data);
    };
    send({ kind: "hello" });
  });
}
