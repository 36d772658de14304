import { describe, expect, test } from "vitest";
import { createParser, type SseEvent } from "./sse";

const encoder = new TextEncoder();

function parse(pieces: Iterable<Uint8Array>) {
  const events: SseEvent[] = [];
  const seen = { comments: 0, retries: [] as number[] };
  const parser = createParser({
    onEvent: (event) => events.push(event),
    onComment: () => {
      seen.comments += 1;
    },
    onRetry: (ms) => seen.retries.push(ms),
  });
  for (const piece of pieces) parser.push(piece);
  return { events, ...seen };
}

const whole = (text: string) => parse([encoder.encode(text)]);
const ODD =
  "\ufeffretry: 2100\nevent: open\nid: jobs@1.2\ndata: {}\n\n: heartbeat\r\n\r\n" +
  'event: patch\r\nid: jobs@1.3,job:a@4\r\ndata: {"héllo":"☃ 🜁"}\r\n\r\nevent:patch\rdata:one\rdata:  two\r\r' +
  "id: with\0nul\ndata\ndata\n\nnonsense: x\n:\nevent: dropped\n\ndata: last\n\ndata: cut off";

describe("the parser", () => {
  test("reads what servers write, and what the standard allows beside it", () => {
    const { events, comments, retries } = whole(ODD);
    expect(events).toEqual([
      { event: "open", id: "jobs@1.2", data: "{}" },
      { event: "patch", id: "jobs@1.3,job:a@4", data: '{"héllo":"☃ 🜁"}' },
      { event: "patch", id: "jobs@1.3,job:a@4", data: "one\n two" },
      { event: "message", id: "jobs@1.3,job:a@4", data: "\n" },
      { event: "message", id: "jobs@1.3,job:a@4", data: "last" },
    ]);
    expect(comments).toBe(2);
    expect(retries).toEqual([2100]);
  });

  test("says the same however the bytes are cut in two", () => {
    const bytes = encoder.encode(ODD);
    const expected = whole(ODD);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(parse([bytes.slice(0, at), bytes.slice(at)])).toEqual(expected);
    }
  });

  test("says the same byte by byte", () => {
    expect(parse([...encoder.encode(ODD)].map((byte) => Uint8Array.of(byte)))).toEqual(whole(ODD));
  });

  test("says nothing of a frame whose blank line never came", () => {
    const text = "event: patch\nid: 7\ndata: {}\n\n";
    for (let length = 0; length < text.length; length += 1) expect(whole(text.slice(0, length)).events).toEqual([]);
    expect(whole(text).events).toHaveLength(1);
  });

  test("takes a line of a megabyte in many pieces", () => {
    const long = "x".repeat(1_000_000);
    const bytes = encoder.encode(`data: ${long}\n\n`);
    const pieces = Array.from({ length: Math.ceil(bytes.length / 1_000) }, (_, i) =>
      bytes.slice(i * 1_000, (i + 1) * 1_000),
    );
    expect(parse(pieces).events[0]?.data).toBe(long);
  });
});
