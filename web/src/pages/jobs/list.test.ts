import { describe, expect, test } from "vitest";
import type { JobState } from "../../api/schemas";
import type { JobDocument } from "../../live";
import { shortId } from "../../shortId";
import { shownJob } from "../../state";
import { bulkFilter, canBe } from "./bulk";
import { NONE, wantedOf } from "./filter";
import { doneOf, noteOf } from "./says";
import { between } from "./useChoice";
import { GIVEN, nameOf, readViews, withView, writeViews } from "./views";
import { parseText } from "./words";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const ADMIN = { caller: "root", isAdmin: true };
const job = (with_: Partial<JobDocument>): JobDocument =>
  ({
    job_id: "019a0000-0000-7000-8000-00000000abcd",
    status: "PROCESSING",
    is_paused: false,
    error: null,
    failed_step: null,
    progress_message: null,
    steps_total: 4,
    steps_open: 1,
    ...with_,
  }) as JobDocument;

describe("an act on a filter", () => {
  test("is for what is listed, everybody's if everybody's is listed, and for nothing made later", () => {
    const { filter } = parseText("status:failed recipe:index label:a=1 since:1h");
    expect(bulkFilter(wantedOf(filter, ADMIN, NOW), NOW + 5_000)).toEqual({
      status: ["FAILED"],
      activity: [],
      event: null,
      label: ["a=1"],
      recipe: "index",
      failed_step: null,
      since: "2026-03-01T11:00:00.000Z",
      until: "2026-03-01T12:00:05.000Z",
      caller: "*",
    });
  });

  test("never reaches further than the filter's own end", () => {
    const wanted = wantedOf(parseText("until:2026-02-01T00:00:00Z").filter, ADMIN, NOW);
    expect(bulkFilter(wanted, NOW).until).toBe("2026-02-01T00:00:00.000Z");
  });

  test("means something to jobs in the right state only", () => {
    const able = (status: JobState) => [canBe("cancel", job({ status })), canBe("retry", job({ status }))];
    expect(able("QUEUED")).toEqual([true, false]);
    expect(able("FAILED")).toEqual([false, true]);
    expect(able("CANCELLED")).toEqual([false, true]);
    expect(able("COMPLETED")).toEqual([false, false]);
  });
});

describe("a row says", () => {
  test("why it failed before how far it was", () => {
    const error = { code: "handler_failed", message: "no\n  text   layer" };
    expect(noteOf(job({ status: "FAILED", error, failed_step: "ocr", progress_message: "page 3" }))).toEqual({
      text: "ocr: no text layer",
      isError: true,
    });
    expect(noteOf(job({ status: "CANCELLED", error }))?.isError).toBe(false);
    expect(noteOf(job({ error: { code: "lost" } }))?.text).toBe("lost");
    expect(noteOf(job({ progress_message: "page 3" }))).toEqual({ text: "page 3", isError: false });
    expect(noteOf(job({}))).toBeNull();
    expect(noteOf(job({ error: { message: "x".repeat(99_999) } }))?.text.length).toBe(300);
  });

  test("how far it is, whatever the numbers are", () => {
    expect(doneOf(job({}))).toEqual({ done: 3, of: 4, part: 0.75 });
    expect(doneOf(job({ steps_total: 0, steps_open: 0 })).part).toBe(0);
    expect(doneOf(job({ steps_total: 2, steps_open: 5 }))).toEqual({ done: 0, of: 2, part: 0 });
    expect(doneOf(job({ status: "COMPLETED", steps_total: 0, steps_open: 0 })).part).toBe(1);
  });

  test("that it is paused only while it can go on", () => {
    expect(shownJob(job({ is_paused: true })).word).toBe("Paused");
    expect(shownJob(job({ is_paused: true, status: "TIMEOUT" })).word).toBe("Timed out");
    expect(shortId(job({}).job_id)).toBe("…0000abcd");
  });

  test("what it is doing, in the API's words beside ours", () => {
    expect(shownJob(job({ activity: "waiting", waiting_for: "event:approved" }))).toEqual({
      look: "waiting",
      word: "Waiting",
      tip: "status PROCESSING, activity waiting",
    });
    expect(shownJob(job({ activity: "sleeping", waiting_for: "retry" }))).toMatchObject({ look: "retrying" });
    expect(shownJob(job({ activity: "sleeping", waiting_for: "timer" })).word).toBe("Sleeping");
    expect(shownJob(job({ status: "COMPLETED", activity: null }))).toEqual({
      look: "succeeded",
      word: "Completed",
      tip: "status COMPLETED",
    });
    expect(shownJob(job({})).word).toBe("Running");
  });

  test("what it waits for, rather than what it said when it ran", () => {
    const said = (more: Partial<JobDocument>) => noteOf(job({ progress_message: "page 3", ...more }))?.text;
    expect(said({ activity: "waiting", waiting_for: "event:approved" })).toBe("waits for approved");
    expect(said({ activity: "running", waiting_for: "child" })).toBe("page 3");
    expect(said({ activity: "queued", waiting_for: "budget:recipe:card" })).toBe("held by the budget of recipe card");
    expect(said({ activity: "queued", waiting_for: "budget:job:019a" })).toBe("held by the job's budget");
  });
});

describe("a range of rows", () => {
  test("goes both ways, and is the one row where the other is gone", () => {
    const ids = ["e", "d", "c", "b", "a"];
    expect(between(ids, "d", "b")).toEqual(["d", "c", "b"]);
    expect(between(ids, "b", "d")).toEqual(["d", "c", "b"]);
    expect(between(ids, "gone", "b")).toEqual(["b"]);
    expect(between(ids, "b", "gone")).toEqual([]);
  });
});

describe("views", () => {
  const storage = (text: string | null) => {
    const kept = { text };
    return {
      kept,
      getItem: () => kept.text,
      setItem: (_: string, next: string) => {
        kept.text = next;
      },
    };
  };

  test("are kept under a name, and replaced under the same one", () => {
    const { filter } = parseText("status:failed recipe:index");
    const box = storage(null);
    writeViews(box, withView(withView([], " Mine ", NONE), "Mine", filter));
    expect(readViews(box)).toEqual([{ name: "Mine", text: "status:failed recipe:index" }]);
    expect(nameOf(readViews(box), filter)).toBe("Mine");
    expect(nameOf([], NONE)).toBeUndefined();
  });

  test("that cannot be read are left out", () => {
    const odd = ["", "{", "null", "7", '[1,null,{"name":""},{"name":"a"},{"name":"b","text":"zork:1"}]'];
    for (const text of odd) expect(readViews(storage(text))).toEqual([]);
    const shut = {
      setItem: () => {
        throw new Error("quota");
      },
    };
    expect(writeViews(shut, [])).toBe(false);
  });

  test("that everybody has can be read", () => {
    for (const view of GIVEN) expect(parseText(view.text).issues).toEqual([]);
  });
});
