import { expect, test } from "vitest";
import { sampleLines } from "../api/samples";
import { createClient } from "./client";
import type { JobPatch } from "./patch";
import type { ToHub } from "./protocol";

const patch = (from: number, to: number): JobPatch => ({
  seq: to,
  job: null,
  steps: [],
  fans: {},
  events: sampleLines(from, to),
});

function setUp() {
  const sent: ToHub[] = [];
  const frames: (() => void)[] = [];
  const client = createClient(
    () => undefined,
    (run) => frames.push(run),
  );
  client.connect({ send: (message) => sent.push(message) });
  const follow = (seq: number) => {
    const noted = { seqs: [] as number[], batches: 0, resets: 0 };
    client.followJob("a", seq, {
      onPatch: (one) => {
        noted.batches += 1;
        noted.seqs.push(...one.events.map((event) => event.seq));
      },
      onReset: () => {
        noted.resets += 1;
      },
      onGone: () => undefined,
    });
    return noted;
  };
  const say = (from: number, to: number) => client.hear({ kind: "job", id: "a", patch: patch(from, to) });
  const open = (place: number) => client.hear({ kind: "open", topic: "job:a", place: String(place) });
  return { client, sent, frames, follow, say, open };
}

test("a frame brings one batch, however many patches came", () => {
  const { follow, frames, say, open } = setUp();
  const one = follow(0);
  open(0);
  say(1, 2);
  say(3, 3);
  say(4, 9);
  expect(one.batches).toBe(0);
  expect(frames).toHaveLength(1);
  frames[0]?.();
  expect(one).toMatchObject({ batches: 1, seqs: [1, 2, 3, 4, 5, 6, 7, 8, 9] });
});

test("what was on its way before the hub went back does not hide what is between", () => {
  const { client, follow, say, open } = setUp();
  const first = follow(50);
  open(50);
  say(51, 57);
  client.flush();
  const second = follow(52);
  // Sent before the hub heard of the second one.
  say(58, 58);
  open(52);
  say(53, 60);
  client.flush();
  expect(first.seqs).toEqual([51, 52, 53, 54, 55, 56, 57, 58, 59, 60]);
  expect(second.seqs).toEqual([53, 54, 55, 56, 57, 58, 59, 60]);
});

test("a server that will not go back is asked a few times, then the snapshot is read again", () => {
  const { sent, follow, open } = setUp();
  const one = follow(3);
  for (let i = 0; i < 10; i += 1) open(9);
  expect(sent.filter((message) => message.kind === "join")).toHaveLength(4);
  expect(one.resets).toBeGreaterThan(0);
});

test("a tab that rests says nothing, and knows where it was", () => {
  const { client, sent, follow, say, open } = setUp();
  const one = follow(0);
  open(0);
  say(1, 4);
  client.rest();
  expect(one.seqs).toEqual([1, 2, 3, 4]);
  sent.length = 0;
  follow(9);
  expect(sent).toEqual([]);
  client.wake();
  expect(sent).toContainEqual({ kind: "join", topic: "job:a", place: "4", isBack: true });
});
