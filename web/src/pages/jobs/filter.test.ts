import { describe, expect, test } from "vitest";
import type { JobDocument } from "../../live";
import { JOB_STATES } from "../../state";
import { filterOf, instantOf, matches, NONE, paramsOf, termsOf, wantedOf, without } from "./filter";
import { complete, parseText, take, textOf, wordsOf } from "./words";

const NOW = Date.parse("2026-03-01T12:00:00Z");
const ADMIN = { caller: "root", isAdmin: true };
const ANA = { caller: "ana", isAdmin: false };
const job = (with_: Partial<JobDocument> = {}): JobDocument =>
  ({
    job_id: "j1",
    status: "FAILED",
    recipe: "index",
    caller: "ana",
    labels: { corpus: "x", "a.b": "c=d:e" },
    failed_step: "fetch",
    created_at: "2026-03-01T11:30:00Z",
    deleted_at: null,
    seq: 3,
    ...with_,
  }) as JobDocument;

describe("the filter's text", () => {
  test("becomes a filter and the same text again", () => {
    const text = 'status:failed,timeout recipe:index label:corpus=x label:"team=two words" failed_step:fetch since:1h';
    const { filter, issues } = parseText(text);
    expect(issues).toEqual([]);
    expect(filter).toEqual({
      ...NONE,
      status: ["FAILED", "TIMEOUT"],
      recipe: "index",
      label: ["corpus=x", "team=two words"],
      failed_step: "fetch",
      since: "1h",
    });
    expect(parseText(textOf(filter)).filter).toEqual(filter);
    expect(textOf(NONE)).toBe("");
  });

  test("says at once what it does not know", () => {
    const said = (text: string) => parseText(text).issues.map((issue) => issue.message);
    expect(said("state:failed")[0]).toContain("There is no key state. There are status, activity, recipe");
    expect(said("status:borked")[0]).toContain("There is no status borked. There are pending,");
    expect(said("status:fialed,queued")).toHaveLength(1);
    expect(said("index")[0]).toBe("Add a key to index, such as recipe:index");
    expect(said("failed")[0]).toBe("Write status:failed");
    expect(said("since:yesterday")[0]).toContain("neither an age");
    expect(said("recipe:")[0]).toContain("recipe: what?");
    expect(said("label:corpus")[0]).toContain("label:name=value");
    expect(said("recipe:a recipe:b")).toEqual(["recipe can be given once"]);
    expect(said("recipe:a recipe:a status:running")).toEqual([]);
  });

  test("keeps the good words of a line with a bad one", () => {
    expect(parseText("recipe:index what:ever").filter.recipe).toBe("index");
  });

  test("survives hostile text", () => {
    for (const text of [
      '"',
      'a:"',
      ":",
      "::",
      'label:"="',
      "__proto__:x",
      "constructor:x",
      "\u0000:x",
      "x".repeat(9_999),
    ]) {
      expect(() => parseText(text)).not.toThrow();
    }
    expect(parseText("__proto__:x").issues).toHaveLength(1);
    expect(parseText("status:constructor").issues).toHaveLength(1);
  });

  test("knows every state by its own name and one by another", () => {
    for (const status of JOB_STATES)
      expect(parseText(`status:${status.toLowerCase()}`).filter.status).toEqual([status]);
    expect(parseText("status:failed,succeeded").filter.status).toEqual(["FAILED", "COMPLETED"]);
  });

  test("takes what jobs are doing, also where a state is asked for", () => {
    expect(parseText("activity:waiting,Running").filter.activity).toEqual(["waiting", "running"]);
    expect(parseText("status:waiting").filter).toEqual({ ...NONE, activity: ["waiting"] });
    expect(parseText("status:queued").filter).toEqual({ ...NONE, status: ["QUEUED"] });
    expect(parseText("status:waiting,failed").issues[0]?.message).toContain("write activity:waiting");
    expect(parseText("activity:idle").issues[0]?.message).toContain("There is no activity idle. There are running,");
    expect(parseText("waiting").issues[0]?.message).toBe("Write activity:waiting");
    expect(textOf(parseText("activity:waiting,paused event:approved").filter)).toBe(
      "activity:waiting,paused event:approved",
    );
  });
});

describe("a term", () => {
  test("can be taken away", () => {
    const { filter } = parseText("status:failed label:a=1 label:b=2 caller:ana");
    expect(textOf(without(filter, { key: "label", value: "a=1" }))).toBe("status:failed label:b=2 caller:ana");
    expect(textOf(without(filter, { key: "status", value: "failed" }))).toBe("label:a=1 label:b=2 caller:ana");
    expect(filterOf(termsOf(filter)).filter).toEqual(filter);
  });
});

describe("what is asked of the API", () => {
  test("has the API's names, times instead of ages, and whose", () => {
    const { filter } = parseText("status:failed,denied label:a=1 label:b=2 since:1h until:2026-03-01T11:45:00Z");
    expect(paramsOf(wantedOf(filter, ADMIN, NOW)).toString()).toBe(
      "status=FAILED%2CDENIED&label=a%3D1&label=b%3D2&since=2026-03-01T11%3A00%3A00.000Z&until=2026-03-01T11%3A45%3A00.000Z&caller=*",
    );
    expect(paramsOf(wantedOf(NONE, ANA, NOW)).toString()).toBe("caller=ana");
    const doing = parseText("activity:waiting,queued event:approved").filter;
    expect(paramsOf(wantedOf(doing, ANA, NOW)).toString()).toBe("activity=waiting%2Cqueued&event=approved&caller=ana");
    expect(paramsOf(wantedOf(parseText("caller:bo").filter, ADMIN, NOW)).get("caller")).toBe("bo");
  });

  test("takes ages and times", () => {
    expect(instantOf("90s", NOW)).toBe(NOW - 90_000);
    expect(instantOf("2W", NOW)).toBe(NOW - 14 * 86_400_000);
    expect(instantOf("2026-02-28", NOW)).toBe(Date.parse("2026-02-28"));
    expect(instantOf("7", NOW)).toBeNull();
    expect(instantOf("2026-99-99", NOW)).toBeNull();
  });
});

describe("whether a job belongs to the list", () => {
  test.each([
    ["", true],
    ["status:failed", true],
    ["status:queued", false],
    ["recipe:index", true],
    ["recipe:ind", false],
    ["label:corpus=x", true],
    ["label:corpus=x label:other=y", false],
    ["label:a.b=c=d:e", true],
    ["failed_step:fetch", true],
    ["since:1h", true],
    ["since:10m", false],
    ["until:10m", true],
    ["until:1h", false],
    ["caller:ana", true],
    ["caller:bo", false],
  ])("%s: %s", (text, belongs) => {
    expect(matches(wantedOf(parseText(text).filter, ADMIN, NOW), job())).toBe(belongs);
  });

  test("by what it is doing, as far as that is known", () => {
    const fits = (text: string, with_: Partial<JobDocument>) =>
      matches(wantedOf(parseText(text).filter, ADMIN, NOW), job({ status: "PROCESSING", ...with_ }));
    expect(fits("activity:waiting", { activity: "waiting" })).toBe(true);
    expect(fits("activity:waiting,queued", { activity: "running" })).toBe(false);
    expect(fits("activity:waiting", {})).toBe(true);
    expect(fits("activity:waiting", { status: "COMPLETED", activity: null })).toBe(false);
    expect(fits("event:approved", { activity: "waiting" })).toBe(true);
    expect(fits("event:approved", { activity: "running" })).toBe(false);
  });

  test("not a deleted job", () => {
    expect(matches(wantedOf(NONE, ADMIN, NOW), job({ deleted_at: "2026-03-01T11:59:00Z" }))).toBe(false);
  });
});

describe("completion", () => {
  const known = { recipe: ["index", "ingest", "two words"], caller: ["ana"] };
  const labels = (text: string, caret = text.length) => complete(text, caret, known).options.map((one) => one.label);

  test("offers keys, then their values", () => {
    expect(labels("")).toContain("failed_step:");
    expect(labels("re")).toEqual(["recipe:"]);
    expect(labels("recipe:in")).toEqual(["index", "ingest"]);
    expect(labels("status:failed,ca")).toEqual(["cancelled"]);
    expect(labels("activity:running,w")).toEqual(["waiting"]);
    expect(labels("constructor:x")).toEqual([]);
    expect(labels("since:")).toContain("1h");
    expect(labels("nonsense:x")).toEqual([]);
  });

  test("finds the key of a bare value", () => {
    expect(complete("ind", 3, known).options[0]?.insert).toBe("recipe:index");
    expect(complete("fai", 3, known).options.map((one) => one.insert)).toEqual(["failed_step:", "status:failed"]);
  });

  test("puts an option in the place of the word at the caret", () => {
    const at = complete("status:fa recipe:index", 9, known);
    const option = at.options[0];
    expect(option?.label).toBe("failed");
    if (option === undefined) return;
    expect(take("status:fa recipe:index", at, option)).toEqual({ text: "status:failed recipe:index", caret: 14 });
    const spaced = complete("recipe:two", 10, known);
    expect(take("recipe:two", spaced, spaced.options[0] ?? option).text).toBe('recipe:"two words" ');
  });

  test("knows where words are", () => {
    expect(wordsOf(' a:"x y"  b ')).toEqual([
      { key: "a", value: "x y", from: 1, to: 8 },
      { key: "", value: "b", from: 10, to: 11 },
    ]);
  });
});
