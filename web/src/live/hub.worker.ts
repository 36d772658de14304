/** The hub as a SharedWorker: one for all tabs of this origin, alive for as long as one of them is. */
import { createHub } from "./hub";
import { watchTabs } from "./presence";
import type { ToHub, ToTab } from "./protocol";

/** TypeScript has no type for the scope of a shared worker beside the types of the DOM. */
interface SharedScope {
  onconnect: ((event: MessageEvent) => void) | null;
  addEventListener(kind: "online", listener: () => void): void;
}

declare const self: SharedScope;

const hub = createHub();
const presence = watchTabs((tab) => hub.detach(tab));

self.onconnect = (event) => {
  const port = event.ports[0];
  if (port === undefined) return;
  let tab: string | null = null;
  port.onmessage = ({ data }: MessageEvent<{ tab: string; message: ToHub }>) => {
    // A page that comes back from the browser's cache is attached anew, under the same name.
    if (data.message.kind === "hello") {
      tab = data.tab;
      presence.add(tab);
      hub.attach(tab, { post: (message: ToTab) => port.postMessage(message) });
    } else if (tab !== null) {
      presence.heard(tab);
      hub.take(tab, data.message);
      if (data.message.kind === "bye") presence.remove(tab);
    }
  };
  port.start();
};

self.addEventListener("online", () => hub.nudge());
