import { expect, test } from "vitest";
import { jobIdIn } from "./jobId";

const ID = "01a1e247-f915-7792-be90-84c786ed2e37";

test.each([ID, ` ${ID}\n`, ID.toUpperCase(), ID.replaceAll("-", ""), `http://h:8000/console/jobs/${ID}?tab=graph`])(
  "%j names the job",
  (text) => {
    expect(jobIdIn(text)).toBe(ID);
  },
);

test.each(["", "index", "01a1e247", `${ID}0`, "g".repeat(32)])("%j names none", (text) => {
  expect(jobIdIn(text)).toBeUndefined();
});
