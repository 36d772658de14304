import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Client, createClient } from "./client";
import { createHub, type Hub } from "./hub";
import type { Status } from "./protocol";
import { type StreamServer, startStreamServer } from "./streamServer";
import { JOBS, jobTopic } from "./topic";

let server: StreamServer;
let hub: Hub;
beforeEach(async () => {
  server = await startStreamServer();
  hub = createHub({ url: server.url, wait: (failures) => Math.min(failures, 3), soonMs: 1, lingerMs: 4 });
});
afterEach(async () => {
  for (const tab of ["one", "two", "three"]) hub.detach(tab);
  await server.close();
});

interface Tab {
  readonly client: Client;
  readonly statuses: Status[];
  leave(): void;
}

/** A tab as in a browser, apart from the frame, which is the next turn. */
function openTab(name: string): Tab {
  const statuses: Status[] = [];
  const client = createClient((status) => statuses.push(status), setImmediate);
  hub.attach(name, { post: (message) => queueMicrotask(() => client.hear(structuredClone(message))) });
  client.connect({ send: (message) => queueMicrotask(() => hub.take(name, structuredClone(message))) });
  return { client, statuses, leave: () => hub.detach(name) };
}

/** Follow a job and note the number of every event that is told. */
function noteJob(tab: Tab, id: string, seq: number) {
  const noted = { seqs: [] as number[], resets: 0, gone: "" };
  const unfollow = tab.client.followJob(id, seq, {
    onPatch: (patch) => noted.seqs.push(...patch.events.map((event) => event.seq)),
    onReset: () => {
      noted.resets += 1;
    },
    onGone: (code) => {
      noted.gone = code;
    },
  });
  return Object.assign(noted, { unfollow });
}

function noteJobs(tab: Tab) {
  const noted = { ids: [] as string[], resets: 0 };
  const unfollow = tab.client.followJobs(
    (jobs) => noted.ids.push(...jobs.map((job) => job.job_id)),
    () => {
      noted.resets += 1;
    },
  );
  return Object.assign(noted, { unfollow });
}

async function until(holds: () => boolean): Promise<void> {
  const end = Date.now() + 5_000;
  while (!holds()) {
    if (Date.now() > end) throw new Error("it never came");
    await new Promise((done) => setTimeout(done, 1));
  }
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

describe("the hub", () => {
  test("tells every event once, wherever the connection is cut", async () => {
    server.grow(jobTopic("a"), 6);
    const whole = openTab("two");
    const first = noteJob(whole, "a", 0);
    await until(() => first.seqs.length === 6);
    whole.leave();
    await until(() => server.open === 0);
    for (let at = 0; at <= server.longest; at += 1) {
      server.cuts = [at];
      const tab = openTab("one");
      const noted = noteJob(tab, "a", 0);
      await until(() => noted.seqs.length >= 6);
      expect(noted.seqs, `cut after ${at} bytes`).toEqual(range(1, 6));
      tab.leave();
      await until(() => server.open === 0 && hub.size === 0);
    }
  }, 120_000);

  test("tells every event once when each of many connections is cut a little later", async () => {
    const tab = openTab("one");
    const job = noteJob(tab, "a", 0);
    const jobs = noteJobs(tab);
    await until(() => jobs.resets === 1);
    server.cuts = range(1, 60).map((n) => 40 + n * 7);
    server.cutAll();
    for (const n of range(1, 40)) {
      server.grow(jobTopic("a"), n);
      server.grow(JOBS, n);
      await new Promise((done) => setTimeout(done, 1));
    }
    await until(() => job.seqs.length >= 40 && jobs.ids.length >= 40);
    expect(job.seqs).toEqual(range(1, 40));
    expect(jobs.ids).toEqual(range(1, 40).map((n) => `é${n}`));
    expect(jobs.resets).toBe(1);
  }, 30_000);

  test("has one connection for all tabs, and changes it when topics do", async () => {
    const [one, two] = [openTab("one"), openTab("two")];
    const [a, jobs] = [noteJob(one, "a", 0), noteJobs(two)];
    await until(() => jobs.resets === 1);
    expect(server.asked).toEqual([`${jobTopic("a")}@0,${JOBS}`]);
    server.grow(jobTopic("a"), 3);
    const b = noteJob(two, "b", 0);
    server.grow(jobTopic("b"), 2);
    await until(() => b.seqs.length === 2 && a.seqs.length === 3);
    expect(server.open).toBe(1);
    b.unfollow();
    a.unfollow();
    jobs.unfollow();
    await until(() => server.open === 0);
    expect(two.statuses.at(-1)?.phase).toBe("idle");
  });

  test("goes back for a tab whose snapshot is older, and repeats nothing to the others", async () => {
    const [one, two] = [openTab("one"), openTab("two")];
    server.grow(jobTopic("a"), 5);
    const ahead = noteJob(one, "a", 0);
    await until(() => ahead.seqs.length === 5);
    const late = noteJob(two, "a", 2);
    const same = noteJob(one, "a", 3);
    server.grow(jobTopic("a"), 8);
    await until(() => late.seqs.length >= 6 && same.seqs.length >= 5 && ahead.seqs.length >= 8);
    expect([ahead.seqs, late.seqs, same.seqs]).toEqual([range(1, 8), range(3, 8), range(4, 8)]);
  });

  test("leaves out what a newer snapshot has already", async () => {
    const [one, two] = [openTab("one"), openTab("two")];
    server.grow(jobTopic("a"), 5);
    const behind = noteJob(one, "a", 0);
    const ahead = noteJob(two, "a", 4);
    await until(() => behind.seqs.length === 5 && ahead.seqs.length === 1);
    expect(ahead.seqs).toEqual([5]);
  });

  test("lets a tab rest, and tells it what it missed when it wakes", async () => {
    const tab = openTab("one");
    const [job, jobs] = [noteJob(tab, "a", 0), noteJobs(tab)];
    await until(() => jobs.resets === 1);
    server.grow(jobTopic("a"), 2);
    server.grow(JOBS, 2);
    await until(() => job.seqs.length === 2 && jobs.ids.length === 2);
    tab.client.rest();
    await until(() => server.open === 0);
    server.grow(jobTopic("a"), 9);
    server.grow(JOBS, 4);
    tab.client.wake();
    await until(() => job.seqs.length >= 9 && jobs.ids.length >= 4);
    expect(job.seqs).toEqual(range(1, 9));
    expect(jobs.ids).toEqual(["é1", "é2", "é3", "é4"]);
    expect(tab.statuses.some((status) => (status.behind ?? 0) > 0)).toBe(true);
    await until(() => tab.statuses.at(-1)?.behind === null);
  });

  test("sends a tab that wakes back to its snapshot when the list went on without it", async () => {
    const [one, two] = [openTab("one"), openTab("two")];
    const [rested, kept] = [noteJobs(one), noteJobs(two)];
    await until(() => rested.resets === 1 && kept.resets === 1);
    one.client.rest();
    server.grow(JOBS, 3);
    await until(() => kept.ids.length === 3);
    one.client.wake();
    await until(() => rested.resets === 2);
    expect(kept.resets).toBe(1);
  });

  test("passes on reset and gone", async () => {
    const tab = openTab("one");
    const [a, b, jobs] = [noteJob(tab, "a", 0), noteJob(tab, "b", 0), noteJobs(tab)];
    await until(() => jobs.resets === 1);
    server.send("reset", { topic: JOBS, cursor: `${JOBS}@70` });
    server.send("gone", { topic: jobTopic("a"), code: "ended" });
    server.send("news", { what: "a later server knows more" });
    await until(() => jobs.resets === 2 && a.gone === "ended");
    server.cutAll();
    await until(() => server.asked.at(-1) === `${jobTopic("b")}@0,${JOBS}@70`);
    expect(b.gone).toBe("");
  });

  test("starts over where the server cannot read its places", async () => {
    const tab = openTab("one");
    const job = noteJob(tab, "a", 900);
    server.refusals = [400];
    await until(() => job.resets === 1 && server.open === 1);
    expect(server.asked).toEqual([`${jobTopic("a")}@900`, jobTopic("a")]);
  });

  test("comes back after bye without having been away, and says so after a break", async () => {
    const tab = openTab("one");
    const job = noteJob(tab, "a", 0);
    await until(() => server.open === 1 && tab.statuses.at(-1)?.phase === "open");
    const before = tab.statuses.length;
    server.send("bye", {});
    await until(() => server.asked.length === 2 && server.open === 1);
    expect(tab.statuses.slice(before).every((status) => status.phase === "open")).toBe(true);
    server.refusals = [503, 503, 503];
    server.cutAll();
    await until(() => server.asked.length === 6 && server.open === 1);
    expect(tab.statuses.map((status) => status.phase)).toContain("broken");
    server.grow(jobTopic("a"), 4);
    await until(() => job.seqs.length === 4);
    expect(tab.statuses.at(-1)?.phase).toBe("open");
  });

  test("waits for a sign-in, and goes on when a tab follows again", async () => {
    const tab = openTab("one");
    server.refusals = [401];
    const job = noteJob(tab, "a", 0);
    await until(() => tab.statuses.at(-1)?.phase === "signed-out");
    server.grow(jobTopic("a"), 2);
    tab.client.wake();
    await until(() => job.seqs.length === 2);
  });

  test("opens anew for the caller who is signed in now, from where it was", async () => {
    const tab = openTab("one");
    const job = noteJob(tab, "a", 0);
    server.grow(jobTopic("a"), 2);
    await until(() => job.seqs.length === 2);
    tab.client.restart();
    await until(() => server.asked.length === 2 && server.open === 1);
    server.grow(jobTopic("a"), 4);
    await until(() => job.seqs.length >= 4);
    expect(server.asked).toEqual([`${jobTopic("a")}@0`, `${jobTopic("a")}@2`]);
    expect(job.seqs).toEqual([1, 2, 3, 4]);
  });

  test("forgets a tab that is gone", async () => {
    const [one, two] = [openTab("one"), openTab("two")];
    noteJob(one, "a", 0);
    noteJob(two, "b", 0);
    await until(() => server.open === 1);
    one.leave();
    await until(() => server.asked.at(-1) === `${jobTopic("b")}@0`);
    two.leave();
    await until(() => server.open === 0);
    expect(hub.size).toBe(0);
  });
});
