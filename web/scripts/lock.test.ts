import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

interface Locked {
  readonly version?: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Lock {
  readonly packages: Readonly<Record<string, Locked>>;
}

const LOCK = JSON.parse(readFileSync(new URL("../package-lock.json", import.meta.url), "utf8")) as Lock;

/** What the lock names and does not have: one machine's registry may not have had them yet, another's needs them. */
function missing(lock: Lock): string[] {
  return Object.entries(lock.packages).flatMap(([path, locked]) =>
    Object.keys(locked.optionalDependencies ?? {})
      .filter((name) => found(lock, path, name)?.integrity === undefined)
      .map((name) => `${path} → ${name}`),
  );
}

/** A package as Node would find it: below the package that asks, or below one of its parents. */
function found(lock: Lock, from: string, name: string): Locked | undefined {
  const parts = from === "" ? [] : from.split("/node_modules/");
  for (let depth = parts.length; depth >= 0; depth--) {
    const folder = parts.slice(0, depth).join("/node_modules/");
    const locked = lock.packages[`${folder === "" ? "" : `${folder}/`}node_modules/${name}`];
    if (locked !== undefined) return locked;
  }
  return undefined;
}

test("every platform's package that the lock names is in it, with its digest", () => {
  const named = Object.values(LOCK.packages).flatMap((locked) => Object.keys(locked.optionalDependencies ?? {}));
  // Without any there would be nothing to check: the bundler and the style compiler are native programs.
  expect(named.filter((name) => /darwin|win32/.test(name)).length).toBeGreaterThan(4);
  expect(missing(LOCK)).toEqual([]);
});

test("a package that is named and not there is noticed", () => {
  const name = Object.keys(LOCK.packages).find((path) => /binding-darwin-arm64$/.test(path)) ?? "";
  const { [name]: gone, ...rest } = LOCK.packages;
  expect(gone).toBeDefined();
  expect(missing({ packages: rest })).toHaveLength(1);
  expect(missing({ packages: { ...rest, [name]: { version: "1.0.0" } } })).toHaveLength(1);
});

test("every package has its digest, and none an address to be fetched from", () => {
  const packages = Object.entries(LOCK.packages).filter(([path]) => path !== "");
  expect(packages.filter(([, locked]) => locked.integrity === undefined).map(([path]) => path)).toEqual([]);
  expect(packages.filter(([, locked]) => locked.resolved !== undefined).map(([path]) => path)).toEqual([]);
});
