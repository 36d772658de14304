/**
 * The hub: one connection for all tabs. It asks the server for the union of what they follow, and gives each tab its own.
 *
 *     tab ──join jobs──┐                       ┌── jobs ──▶ tabs that follow jobs
 *     tab ──join job──▶ table ─▶ one stream ─▶ route
 *     tab ──leave─────┘    places move on as patches are routed; a new connection begins at them
 *
 * The hub opens a new topic soon. It closes a topic without followers later, because users often return to a page. While
 * topics change the old connection stays open. If a tab stands before the place of the connection, the hub closes the
 * connection at once: further patches would move the place past what the tab has missed.
 */
import { type Schemas, unhandled } from "../api/schemas";
import { type PatchBody, weight } from "./patch";
import type { GoneCode, Phase, Port, Status, ToHub, ToTab } from "./protocol";
import type { SseEvent } from "./sse";
import { createStream, type StreamWays } from "./stream";
import { createTable } from "./table";
import { cursorText, JOBS, jobTopic, type Place, parseCursor, type Topic } from "./topic";

const SOON_MS = 40;
const LINGER_MS = 2_000;
/** Without a patch for so long, all missed patches have arrived. */
const QUIET_MS = 300;

export interface Hub {
  attach(id: string, port: Port): void;
  take(id: string, message: ToHub): void;
  /** The tab is gone. The second time it changes nothing. */
  detach(id: string): void;
  /** Something changed: do not wait for the next try. */
  nudge(): void;
  readonly size: number;
}

/** The frames of the stream, by their events. */
type Frame =
  | { readonly event: "open"; readonly data: Schemas["ConsoleOpen"] }
  | { readonly event: "patch"; readonly data: PatchBody }
  | { readonly event: "reset"; readonly data: Schemas["ConsoleReset"] }
  | { readonly event: "gone"; readonly data: Schemas["ConsoleGone"] }
  | { readonly event: "bye"; readonly data: Schemas["ConsoleBye"] };

function frameOf(event: string, data: string): Frame {
  return { event, data: JSON.parse(data) } as Frame;
}

export interface HubWays extends Partial<StreamWays> {
  readonly soonMs?: number;
  readonly lingerMs?: number;
}

export function createHub(ways: HubWays = {}): Hub {
  const soonMs = ways.soonMs ?? SOON_MS;
  const lingerMs = ways.lingerMs ?? LINGER_MS;
  const ports = new Map<string, Port>();
  const table = createTable();
  let phase: Phase = "idle";
  let lastAt: number | null = null;
  let behind: number | null = null;
  let isReturning = false;
  let quiet: ReturnType<typeof setTimeout> | undefined;
  let change: { at: number; timer: ReturnType<typeof setTimeout> } | undefined;

  const status = (): Status => ({ phase, lastAt, behind });
  const tellAll = (message: ToTab): void => {
    for (const port of ports.values()) port.post(message);
  };
  const tell = (topic: Topic, message: ToTab): void => {
    for (const tab of table.tabsOf(topic)) ports.get(tab)?.post(message);
  };
  const turn = (next: Phase): void => {
    if (next === phase) return;
    phase = next;
    tellAll({ kind: "status", status: status() });
  };

  const caughtUp = (): void => {
    behind = null;
    tellAll({ kind: "status", status: status() });
  };
  const countBehind = (by: number): void => {
    behind = (behind ?? 0) + by;
    clearTimeout(quiet);
    quiet = setTimeout(caughtUp, QUIET_MS);
    tellAll({ kind: "status", status: status() });
  };

  const reach = (cursor: ReadonlyMap<Topic, Place | null>): void => {
    for (const [topic, place] of cursor) {
      const wasOpen = table.isOpen(topic);
      if (table.reach(topic, place) && !wasOpen) tell(topic, { kind: "open", topic, place: table.place(topic) });
    }
  };

  const route = (id: string, body: PatchBody): void => {
    const cursor = parseCursor(id);
    if (behind !== null) countBehind(weight(body));
    if (body.jobs.length > 0) tell(JOBS, { kind: "jobs", place: cursor.get(JOBS) ?? null, jobs: body.jobs });
    for (const [job, patch] of Object.entries(body.job)) {
      tell(jobTopic(job), { kind: "job", id: job, patch });
    }
    reach(cursor);
  };

  const onReset = (topic: Topic, cursor: string): void => {
    const place = parseCursor(cursor).get(topic) ?? null;
    table.reach(topic, place);
    tell(topic, { kind: "reset", topic, place });
  };
  const onGone = (topic: Topic, code: GoneCode): void => {
    tell(topic, { kind: "gone", topic, code });
    table.drop(topic);
    refresh(lingerMs);
  };
  const onEvent = ({ event, id, data }: SseEvent): void => {
    const told = frameOf(event, data);
    switch (told.event) {
      case "patch":
        route(id, told.data);
        break;
      case "open":
        reach(parseCursor(told.data.cursor));
        break;
      case "reset":
        onReset(told.data.topic, told.data.cursor);
        break;
      case "gone":
        onGone(told.data.topic, told.data.code);
        break;
      // The stream itself ends at a `bye`.
      case "bye":
        break;
      default:
        unhandled(told);
    }
  };

  const stream = createStream(
    {
      cursor: () => {
        table.sweep();
        const wanted = table.wanted();
        return wanted.length === 0 ? null : cursorText(wanted);
      },
      onOpen: () => {
        lastAt = Date.now();
        if (isReturning) countBehind(0);
        isReturning = false;
        turn("open");
      },
      onSign: () => {
        lastAt = Date.now();
      },
      onEvent,
      onBroken: (failures) => {
        table.close();
        if (failures > 0) isReturning = true;
        // A stream that the server asked to reconnect is not shown as broken.
        if (failures === 1) turn("opening");
        else if (failures > 1) turn("broken");
      },
      onIdle: () => turn("idle"),
      onSignedOut: () => {
        table.close();
        turn("signed-out");
      },
      onBadPlaces: () => {
        table.forgetPlaces();
        for (const topic of table.topics()) tell(topic, { kind: "reset", topic, place: null });
      },
    },
    ways,
  );

  const reopen = (): void => {
    change = undefined;
    if (phase === "idle" || phase === "signed-out") turn("opening");
    stream.open();
  };
  /** Change the connection within so many milliseconds, together with all changes until then. */
  const refresh = (withinMs: number): void => {
    const at = Date.now() + withinMs;
    if (change !== undefined) {
      if (change.at <= at) return;
      clearTimeout(change.timer);
    }
    change = { at, timer: setTimeout(withinMs >= lingerMs ? letGo : reopen, withinMs) };
  };
  /** Reconnect only if a topic still has no follower. */
  const letGo = (): void => {
    change = undefined;
    if (table.sweep() || table.wanted().length === 0) reopen();
  };

  const join = (tab: string, topic: Topic, place: Place | null, isBack: boolean): void => {
    const joined = table.join(tab, topic, place);
    if (joined === "open") ports.get(tab)?.post({ kind: "open", topic, place: table.place(topic) });
    if (joined === "elsewhere") ports.get(tab)?.post({ kind: "reset", topic, place: table.place(topic) });
    if (joined === "rewound") {
      table.close();
      stream.close();
    }
    if (joined === "added" || joined === "rewound") {
      if (isBack) isReturning = true;
      // A page that opens waits for its data; a page that changes topics still has the old connection.
      refresh(phase === "idle" ? 0 : soonMs);
    } else if (joined === "waiting" && !stream.isUp) stream.nudge();
  };

  const restart = (): void => {
    table.close();
    stream.close();
    table.sweep();
    refresh(0);
  };

  const detach = (id: string): void => {
    if (!ports.delete(id)) return;
    table.leaveAll(id);
    refresh(lingerMs);
  };

  return {
    attach: (id, port) => {
      ports.set(id, port);
      port.post({ kind: "status", status: status() });
    },
    detach,
    nudge: () => stream.nudge(),
    take: (id, message) => {
      if (!ports.has(id)) return;
      switch (message.kind) {
        case "join":
          join(id, message.topic, message.place, message.isBack);
          break;
        case "leave":
          table.leave(id, message.topic);
          refresh(lingerMs);
          break;
        case "ping":
          ports.get(id)?.post({ kind: "status", status: status() });
          break;
        case "restart":
          restart();
          break;
        case "nudge":
          stream.nudge();
          break;
        case "bye":
          detach(id);
          break;
        // The worker or the leader attaches the tab.
        case "hello":
          break;
        default:
          unhandled(message);
      }
    },
    get size() {
      return ports.size;
    },
  };
}
