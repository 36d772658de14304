import { describe, expect, test } from "vitest";
import { type Approval, approvedBy, askedBy, inOrder, leftText, peopleText, titleOf } from "./approvals";

const ONE: Approval = {
  id: "1",
  state: "PENDING",
  job_id: "j",
  job_status: "PROCESSING",
  recipe: "article",
  edge: "node",
  no: 1,
  step: "approve",
  index: null,
  question: "Publish?",
  show: {},
  inputs: {},
  labels: {},
  plan: "p",
  subject: "s",
  requester: "ada",
  policy: null,
  rule: null,
  reason: "",
  need: 2,
  who: [],
  on_reject: "fail",
  votes: [],
  may_decide: true,
  why_not: null,
  created_at: "2026-01-01T00:00:00Z",
  expires_at: "2026-01-02T00:00:00Z",
  escalate_at: null,
  escalated_at: null,
  decided_at: null,
  left_s: 60,
};
const NOBODY = { roles: [], callers: [], escalate_after_s: null, escalate_roles: [], escalate_callers: [] };

describe("the time that is left", () => {
  test.each([
    [0, "0s"],
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_000, "59m 59s"],
    [3_601_000, "1h"],
    [97_200_000, "1d 3h"],
  ])("of %d ms is %s", (ms, text) => {
    expect(leftText(ms)).toBe(text);
  });
});

test("what expires first comes first, and what is decided comes last", () => {
  const late = { ...ONE, id: "late", expires_at: "2026-01-03T00:00:00Z" };
  const done: Approval = { ...ONE, id: "done", state: "USED", expires_at: "2025-01-01T00:00:00Z" };
  expect(inOrder([done, late, ONE]).map((one) => one.id)).toEqual(["1", "late", "done"]);
});

test("people are named by role and by name, and those who come later too", () => {
  expect(peopleText(NOBODY)).toBe("everybody with the right to decide");
  const group = { ...NOBODY, roles: ["lead"], callers: ["grace"], escalate_after_s: 3_600, escalate_roles: ["cto"] };
  expect(peopleText(group)).toBe("role lead or grace; after 1h also role cto");
});

test("what asks is the recipe or a rule", () => {
  expect(askedBy(ONE)).toBe("the recipe article, at approve");
  expect(askedBy({ ...ONE, rule: "prod-mail", step: null })).toBe("the rule prod-mail");
  expect(titleOf({ ...ONE, question: "" })).toBe("Run article");
});

test("only votes for it count as given", () => {
  const vote = { reason: "", note: "", at: "2026-01-01T00:00:00Z" };
  const votes = [
    { ...vote, caller: "grace", choice: "approve" as const },
    { ...vote, caller: "alan", choice: "reject" as const },
  ];
  expect(approvedBy({ ...ONE, votes })).toEqual(["grace"]);
});
