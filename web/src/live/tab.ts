/** The one client of this tab, begun when something is first followed. */
import { type Client, createClient } from "./client";
import { type Link, openLink } from "./link";
import { type Live, liveOf, STARTING } from "./live";
import { holdTabLock, PING_MS } from "./presence";

/** A tab that was hidden for so long stops following. */
const HIDDEN_MS = 30_000;
const UNANSWERED_MAX = 2;

let client: Client | null = null;
let live: Live = STARTING;
const watchers = new Set<() => void>();

export function currentLive(): Live {
  return live;
}

export function watchLive(wake: () => void): () => void {
  watchers.add(wake);
  return () => watchers.delete(wake);
}

export function tabClient(): Client {
  if (client !== null) return client;
  // A hidden tab has no frames: what is told to it waits, merged, until it is looked at or rests.
  const made = createClient(
    (status) => show(liveOf(status, navigator.onLine)),
    (run) => requestAnimationFrame(run),
  );
  client = made;
  void begin(made);
  return made;
}

function show(next: Live): void {
  if (next.state === live.state && next.behind === live.behind && next.lastAt === live.lastAt) return;
  live = next;
  for (const wake of watchers) wake();
}

async function begin(made: Client): Promise<void> {
  const tab = tabName();
  await holdTabLock(tab);
  let link: Link | null = null;
  let unanswered = 0;
  const reach = async (): Promise<void> => {
    unanswered = 0;
    link = await openLink(tab, (message) => {
      unanswered = 0;
      made.hear(message);
    });
    made.connect(link);
  };
  await reach();

  let hidden: ReturnType<typeof setTimeout> | undefined;
  const look = (): void => {
    clearTimeout(hidden);
    if (document.visibilityState === "hidden") hidden = setTimeout(() => made.rest(), HIDDEN_MS);
    else made.wake();
  };
  look();
  document.addEventListener("visibilitychange", look);
  window.addEventListener("online", () => made.wake());
  window.addEventListener("pagehide", () => link?.send({ kind: "bye" }));
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) made.hear({ kind: "again" });
  });
  setInterval(() => {
    unanswered += 1;
    // A dead worker does not answer: asking for it again starts a new one. Another tab replaces a leading tab.
    if (unanswered > UNANSWERED_MAX && link?.kind === "worker") void reach();
    else link?.send({ kind: "ping" });
  }, PING_MS);
}

/** `randomUUID` is not there on a plain-http host. */
function tabName(): string {
  return [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(36)).join("-");
}
