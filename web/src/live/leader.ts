/**
 * Without a SharedWorker: the tab that has the lock is the hub, and speaks with the others over a channel. Without locks too:
 * every tab is its own.
 */
import { createHub, type Hub } from "./hub";
import type { Hear, Link } from "./link";
import { watchTabs } from "./presence";
import type { ToHub, ToTab } from "./protocol";

const LEADER = "windlass-hub-leader";
const CHANNEL = "windlass-hub";
const ALL_TABS = "*";

type Letter =
  | { readonly to: "hub"; readonly tab: string; readonly message: ToHub }
  | { readonly to: "tab"; readonly tab: string; readonly message: ToTab };

export function openChannelLink(tab: string, hear: Hear, locks: LockManager): Link {
  const channel = new BroadcastChannel(CHANNEL);
  let take: ((from: string, message: ToHub) => void) | null = null;

  channel.onmessage = ({ data }: MessageEvent<Letter>) => {
    if (data.to === "hub") take?.(data.tab, data.message);
    else if (data.tab === tab || data.tab === ALL_TABS) hear(data.message);
  };
  const post = (to: string, message: ToTab): void => {
    if (to === tab) hear(message);
    else channel.postMessage({ to: "tab", tab: to, message } satisfies Letter);
  };
  const send = (message: ToHub): void => {
    const hub = take;
    if (hub === null) channel.postMessage({ to: "hub", tab, message } satisfies Letter);
    else queueMicrotask(() => hub(tab, message));
  };

  // Granted when no other tab leads, also after the leader died: then every tab joins its topics again.
  void locks.request(LEADER, () => {
    take = lead(createHub(), post);
    channel.postMessage({ to: "tab", tab: ALL_TABS, message: { kind: "again" } } satisfies Letter);
    hear({ kind: "again" });
    return new Promise<never>(() => undefined);
  });
  send({ kind: "hello" });
  return { kind: "channel", send };
}

function lead(hub: Hub, post: (tab: string, message: ToTab) => void): (from: string, message: ToHub) => void {
  const presence = watchTabs((gone) => hub.detach(gone));
  addEventListener("online", () => hub.nudge());
  return (from, message) => {
    if (message.kind === "hello") {
      presence.add(from);
      hub.attach(from, { post: (said) => post(from, said) });
      return;
    }
    presence.heard(from);
    hub.take(from, message);
    if (message.kind === "bye") presence.remove(from);
  };
}

export function openOwnLink(tab: string, hear: Hear): Link {
  const hub = createHub();
  const send = (message: ToHub): void => {
    // Later, as everywhere else: a listener that follows something new must not change the table under a patch.
    queueMicrotask(() => {
      if (message.kind === "hello") hub.attach(tab, { post: hear });
      else hub.take(tab, message);
    });
  };
  send({ kind: "hello" });
  return { kind: "alone", send };
}
