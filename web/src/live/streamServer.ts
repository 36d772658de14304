/** For tests: a real HTTP server that speaks the stream's protocol from a list of events, and cuts where it is told. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { sampleJob, sampleLine } from "../api/samples";
import type { PatchBody } from "./patch";
import { cursorText, JOBS, jobOf, type Place, parseCursor, type Topic } from "./topic";

export interface StreamServer {
  readonly url: string;
  /** Every cursor that was asked with, in order. */
  readonly asked: string[];
  /** The next connections are cut after so many bytes of body; Infinity: not. */
  cuts: number[];
  /** The next answers are these statuses, without a stream. */
  refusals: number[];
  /** How many events of each topic there are; connections that are open are told of more at once. */
  grow(topic: Topic, to: number): void;
  send(event: string, data: unknown): void;
  readonly open: number;
  /** Bytes of the longest body so far. */
  readonly longest: number;
  cutAll(): void;
  close(): Promise<void>;
}

interface Open {
  readonly answer: ServerResponse;
  readonly places: Map<Topic, Place | null>;
  left: number;
}

export async function startStreamServer(): Promise<StreamServer> {
  const sizes = new Map<Topic, number>();
  const opens = new Set<Open>();
  const asked: string[] = [];
  let longest = 0;

  const write = (to: Open, text: string): void => {
    const bytes = Buffer.from(text);
    longest = Math.max(longest, bytes.length);
    to.answer.write(bytes.subarray(0, Math.max(0, to.left)));
    to.left -= bytes.length;
    if (to.left <= 0) {
      opens.delete(to);
      to.answer.destroy();
    }
  };
  /** What a connection has not been told yet, in frames of two events at most. */
  const rest = (to: Open): string => {
    let text = "";
    for (const [topic, place] of to.places) {
      for (let at = Number(place ?? 0); at < (sizes.get(topic) ?? 0); ) {
        const next = Math.min(at + 2, sizes.get(topic) ?? 0);
        to.places.set(topic, String(next));
        text += `event: patch\nid: ${cursorText(to.places)}\ndata: ${JSON.stringify(bodyOf(topic, at, next))}\n\n`;
        at = next;
      }
    }
    return text;
  };

  const server = createServer((request, answer) => {
    const cursor = new URL(request.url ?? "", "http://x").searchParams.get("topics") ?? "";
    asked.push(cursor);
    const refusal = made.refusals.shift();
    if (refusal !== undefined) {
      answer.writeHead(refusal, { "Retry-After": "0" }).end();
      return;
    }
    const places = new Map(parseCursor(cursor));
    for (const [topic, place] of places) if (place === null) places.set(topic, String(sizes.get(topic) ?? 0));
    const one: Open = { answer, places, left: made.cuts.shift() ?? Number.POSITIVE_INFINITY };
    opens.add(one);
    answer.on("close", () => opens.delete(one));
    answer.writeHead(200, { "Content-Type": "text/event-stream" });
    answer.flushHeaders();
    const opening = `event: open\nid: ${cursorText(places)}\ndata: ${JSON.stringify({ cursor: cursorText(places) })}\n\n`;
    write(one, opening + rest(one));
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const made: StreamServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/console/stream`,
    asked,
    cuts: [],
    refusals: [],
    grow: (topic, to) => {
      sizes.set(topic, to);
      for (const one of [...opens]) {
        const text = rest(one);
        if (text !== "") write(one, text);
      }
    },
    send: (event, data) => {
      for (const one of [...opens]) write(one, `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
    },
    get open() {
      return opens.size;
    },
    get longest() {
      return longest;
    },
    cutAll: () => {
      for (const one of [...opens]) one.answer.destroy();
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((done) => server.close(() => done()));
    },
  };
  return made;
}

function bodyOf(topic: Topic, after: number, to: number): PatchBody {
  const numbers = Array.from({ length: to - after }, (_, i) => after + i + 1);
  if (topic === JOBS) {
    const doing = { activity: null, waiting_for: null };
    return { jobs: numbers.map((no) => ({ ...sampleJob({ job_id: `é${no}`, seq: 1 }), ...doing })), job: {} };
  }
  const events = numbers.map((seq) => sampleLine(seq));
  return { jobs: [], job: { [jobOf(topic) ?? ""]: { seq: to, job: null, steps: [], fans: {}, events } } };
}
