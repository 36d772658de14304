import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { LOOKS } from "./state";
import { contrast, deltaE2000, difference, over, parseHex, type Rgb, type Sight, seen } from "./stateColour";

const TEXT = 4.5;
const GRAPHICS = 3;
const APART = 12;
const TOLD_APART = ["failed", "succeeded", "running", "waiting", "retrying"] as const;
const SIGHTS: readonly Sight[] = ["normal", "deutan", "protan", "tritan"];
const SURFACES = ["bg", "panel", "panel2", "hover", "chosen", "field"] as const;
const CSS = readFileSync(new URL("./index.css", import.meta.url), "utf8");

/** The tokens of a theme: dark is what its block says, else what light says. */
function tokens(theme: "light" | "dark"): (name: string) => Rgb {
  const block = (start: string): Map<string, string> => {
    const from = CSS.indexOf(`\n${start} {`);
    const body = CSS.slice(from, CSS.indexOf("\n}", from));
    return new Map([...body.matchAll(/--([\w-]+): (#[0-9a-f]{6});/g)].map((found) => [found[1] ?? "", found[2] ?? ""]));
  };
  const all = new Map([...block(":root"), ...(theme === "dark" ? block(".dark") : [])]);
  return (name) => parseHex(all.get(name) ?? "none");
}

/** How strong the tint of a pill is: read where it is drawn. */
function tintOf(): number {
  const found = /\.state-pill \{[^}]*background: color-mix\(in oklab, var\(--c\) (\d+)%/.exec(CSS);
  if (found === null) throw new Error("the pill's tint is not where it was");
  return Number(found[1]) / 100;
}

describe.each(["light", "dark"] as const)("in the %s theme", (theme) => {
  const token = tokens(theme);

  test.each(LOOKS)("the word of %s can be read on its own tint and on every surface", (look) => {
    const ink = token(`st-${look}`);
    for (const surface of SURFACES) {
      const ground = token(surface);
      expect(contrast(ink, over(ink, tintOf(), ground)), `on its tint over ${surface}`).toBeGreaterThanOrEqual(TEXT);
      expect(contrast(ink, ground), `on ${surface}`).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test.each(["fg", "dim", "accent"])("%s can be read on every surface", (name) => {
    for (const surface of SURFACES) {
      expect(contrast(token(name), token(surface)), `on ${surface}`).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test("what is written on the accent can be read, pointed at or not", () => {
    for (const ground of ["accent", "accent-hover"]) {
      expect(contrast(token("on-accent"), token(ground))).toBeGreaterThanOrEqual(TEXT);
    }
  });

  test("a bar of any state is seen on the page and on its track", () => {
    for (const look of LOOKS) {
      for (const ground of ["bg", "panel", "panel2"]) {
        expect(contrast(token(`st-${look}`), token(ground)), `${look} on ${ground}`).toBeGreaterThanOrEqual(GRAPHICS);
      }
    }
  });

  describe.each(SIGHTS)("with %s sight", (sight) => {
    const pairs = TOLD_APART.flatMap((a, i) => TOLD_APART.slice(i + 1).map((b) => [a, b] as const));
    test.each(pairs)("%s and %s are told apart", (a, b) => {
      const [one, other] = [seen(token(`st-${a}`), sight), seen(token(`st-${b}`), sight)];
      expect(difference(one, other)).toBeGreaterThan(APART);
    });
  });
});

// From the published test data of Sharma, Wu and Dalal, with the cases where implementations go wrong.
test.each([
  [[50, 2.6772, -79.7751], [50, 0, -82.7485], 2.0425],
  [[50, 2.49, -0.001], [50, -2.49, 0.0011], 7.2195],
  [[50, 2.5, 0], [73, 25, -18], 27.1492],
  [[50, 2.5, 0], [58, 24, 15], 19.4535],
  [[63.0109, -31.0961, -5.8663], [62.8187, -29.7946, -4.0864], 1.263],
  [[2.0776, 0.0795, -1.135], [0.9033, -0.0636, -0.5514], 0.9082],
] as [Rgb, Rgb, number][])("ΔE 2000 of %j and %j is %d", (a, b, wanted) => {
  expect(deltaE2000(a, b)).toBeCloseTo(wanted, 4);
});

test("with red-green colour blindness, pure red and green differ less", () => {
  const [red, green] = [parseHex("#cc0000"), parseHex("#008800")];
  const apart = (sight: Sight): number => difference(seen(red, sight), seen(green, sight));
  expect(apart("deutan")).toBeLessThan(apart("normal") / 2);
  expect(apart("protan")).toBeLessThan(apart("normal") / 2);
});
