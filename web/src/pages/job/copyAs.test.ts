import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { type Again, asCli, asCurl, asPython, shell } from "./copyAs";

const HOSTILE = {
  quote: "it's; $(touch /tmp/x) `id` \\ \" %s !! \\n",
  lines: "first\nWINDLASS\nEOF\n'''",
  marks: "\u2028\u202etxt.exe \u0000 é 🦆 \ud800",
  at: "@/etc/passwd",
  nested: { "a b": [1, 2.5, true, null, { "'": "'" }] },
};
const job = (inputs: unknown): Again => ({
  recipe: "first-minute",
  version: 3,
  inputs: JSON.stringify(inputs),
  labels: { team: "a'b $HOME" },
  priority: 7,
});

/** The words that a shell makes of a command. */
function words(command: string): string[] {
  const told = execFileSync("/bin/sh", [
    "-c",
    `windlass() { printf '%s\\0' "$@"; }; curl() { printf '%s\\0' "$@"; }; ${command}`,
  ]);
  return told.toString("utf8").split("\0").slice(0, -1);
}

test("what a shell makes of a text is the text", () => {
  for (const text of ["", "plain", "it's", "$(id) `id` \\", "-rf", "a\nb", "'''", '"'])
    expect(words(`windlass ${shell(text)}`)).toEqual([text]);
});

test("inputs reach the command line as they are, whatever they hold", () => {
  const told = words(asCli(job(HOSTILE), "http://127.0.0.1:1"));
  expect(told.slice(0, 4)).toEqual(["submit", "first-minute", "--server", "http://127.0.0.1:1"]);
  const inputs = told.flatMap((word, i) => (told[i - 1] === "--input" ? [word] : []));
  const read = Object.fromEntries(
    inputs.map((one) => [one.split("=")[0], JSON.parse(one.slice(one.indexOf("=") + 1))]),
  );
  expect(read).toEqual(HOSTILE);
  expect(told).toContain("team=a'b $HOME");
});

test("names that the command line would misread go through standard input", () => {
  const odd = { "a=b": 1, "@c": "WINDLASS", "": 2 };
  const text = asCli(job(odd), "http://x");
  expect(text).toContain("--input @- ");
  const body = execFileSync("/bin/sh", ["-c", `windlass() { cat; }; ${text}`]).toString();
  expect(JSON.parse(body)).toEqual(odd);
});

test("a number that is too long for this page is passed on as it was written", () => {
  const long: Again = { ...job({}), inputs: '{"n": 12345678901234567890123, "s": "12345678901234567890"}' };
  expect(asCli(long, "http://x")).toContain("12345678901234567890123");
  expect(asCurl(long, "http://x")).toContain("12345678901234567890123");
  expect(asPython(long, "http://x")).toContain("json.loads(");
});

test("a request carries the whole job", () => {
  const told = words(asCurl(job(HOSTILE), "http://127.0.0.1:1").replace("$WINDLASS_API_KEY", "k"));
  const body = JSON.parse(told[told.indexOf("--data-binary") + 1] as string);
  expect(body).toEqual({
    recipe: "first-minute",
    version: 3,
    inputs: HOSTILE,
    labels: { team: "a'b $HOME" },
    priority: 7,
  });
});

test("Python reads the inputs back as they are", () => {
  const text = asPython(job(HOSTILE), "http://x'\"");
  const stub = [
    "import sys, types, json",
    "class Client:",
    "    def __init__(self, server): self.server = server",
    "    def __enter__(self): return self",
    "    def __exit__(self, *a): pass",
    "    def submit(self, recipe, **kw): print(json.dumps([self.server, recipe, kw])); return self",
    "    def result(self): return ''",
    "sys.modules['windlass'] = types.SimpleNamespace(Client=Client)",
  ].join("\n");
  const [server, recipe, kw] = JSON.parse(execFileSync("python3", ["-c", `${stub}\n${text}`]).toString());
  expect(server).toBe("http://x'\"");
  expect(recipe).toBe("first-minute");
  expect(kw).toEqual({ inputs: HOSTILE, labels: { team: "a'b $HOME" }, priority: 7, version: 3 });
});
