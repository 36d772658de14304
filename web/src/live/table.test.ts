import { describe, expect, test } from "vitest";
import { createTable } from "./table";
import { cursorText, JOBS, jobTopic, parseCursor, TOPICS_MAX } from "./topic";

const A = jobTopic("a");

describe("a cursor", () => {
  test("is the topics with their places, and back", () => {
    const text = "jobs@3.17.ab.4+18.cd.2,job:a@57,job:b";
    const places = parseCursor(text);
    expect([...places]).toEqual([
      ["jobs", "3.17.ab.4+18.cd.2"],
      ["job:a", "57"],
      ["job:b", null],
    ]);
    expect(cursorText(places)).toBe(text);
    expect([...parseCursor("")]).toEqual([]);
  });
});

describe("the topics of all tabs", () => {
  test("are asked for once, however many tabs follow them", () => {
    const table = createTable();
    expect(table.join("one", JOBS, null)).toBe("added");
    expect(table.join("two", JOBS, null)).toBe("waiting");
    expect(table.join("two", A, "5")).toBe("added");
    expect(table.wanted()).toEqual([
      [JOBS, null],
      [A, "5"],
    ]);
    table.reach(JOBS, "p1");
    expect(table.join("three", JOBS, null)).toBe("open");
    expect([...table.tabsOf(JOBS)]).toEqual(["one", "two", "three"]);
  });

  test("stay until no tab follows them and they are swept", () => {
    const table = createTable();
    table.join("one", JOBS, null);
    table.join("two", JOBS, null);
    table.reach(JOBS, "p1");
    table.leave("one", JOBS);
    expect(table.sweep()).toBe(false);
    table.leaveAll("two");
    expect(table.wanted()).toEqual([]);
    // Come back to before the sweep: it never stopped.
    expect(table.join("one", JOBS, null)).toBe("open");
    table.leaveAll("one");
    expect(table.sweep()).toBe(true);
    expect(table.join("one", JOBS, null)).toBe("added");
  });

  test("go back to where the one furthest behind stands", () => {
    const table = createTable();
    table.join("one", A, "5");
    table.reach(A, "9");
    expect(table.join("two", A, "12")).toBe("open");
    expect(table.join("three", A, "7")).toBe("rewound");
    expect(table.place(A)).toBe("7");
  });

  test("send one who stands elsewhere in the feed back to its snapshot", () => {
    const table = createTable();
    table.join("one", JOBS, null);
    table.reach(JOBS, "p9");
    expect(table.join("two", JOBS, "p9")).toBe("open");
    expect(table.join("three", JOBS, "p4")).toBe("elsewhere");
  });

  test("keep their places over a break, and lose them when the server cannot read them", () => {
    const table = createTable();
    table.join("one", A, "5");
    table.reach(A, "9");
    table.close();
    expect(table.isOpen(A)).toBe(false);
    expect(table.wanted()).toEqual([[A, "9"]]);
    table.forgetPlaces();
    expect(table.wanted()).toEqual([[A, null]]);
    expect(table.reach("job:stranger", "1")).toBe(false);
  });

  test("are never more than the server takes, the newest first", () => {
    const table = createTable();
    for (let i = 0; i < TOPICS_MAX + 3; i += 1) table.join("one", jobTopic(String(i)), "1");
    const wanted = table.wanted();
    expect(wanted).toHaveLength(TOPICS_MAX);
    expect(wanted.at(-1)?.[0]).toBe(jobTopic(String(TOPICS_MAX + 2)));
  });
});
