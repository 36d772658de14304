import { expect, test, vi } from "vitest";
import { placesOf } from "../../places";
import { apiOf, type ExtensionModule, mounted } from "./mounting";

const api = apiOf("ada", () => undefined);
const place = () => ({ replaceChildren: vi.fn() });
type Loaded = Partial<ExtensionModule<ReturnType<typeof place>>>;
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve));

test("a module draws into the element and is taken away once", async () => {
  const unmount = vi.fn();
  const mount = vi.fn(() => unmount);
  const element = place();
  const leave = mounted(
    async () => ({ mount }),
    element,
    api,
    () => undefined,
  );
  await settled();
  expect(mount).toHaveBeenCalledWith(element, api);
  leave();
  expect(unmount).toHaveBeenCalledOnce();
  expect(element.replaceChildren).toHaveBeenCalledOnce();
});

test("a page that is left before its module has come is never drawn", async () => {
  const mount = vi.fn(() => () => undefined);
  let come: (module: Loaded) => void = () => undefined;
  const leave = mounted(
    () => new Promise<Loaded>((resolve) => (come = resolve)),
    place(),
    api,
    () => undefined,
  );
  leave();
  come({ mount });
  await settled();
  expect(mount).not.toHaveBeenCalled();
});

test.each([
  ["cannot be loaded", () => Promise.reject(new Error("no such file"))],
  ["exports no mount", async () => ({})],
])("a module that %s is told", async (_, load) => {
  const told = vi.fn();
  mounted(load as () => Promise<Loaded>, place(), api, told);
  await settled();
  expect(told).toHaveBeenCalledOnce();
});

test("an icon that the console lacks is a piece of a puzzle, and no name reaches into an object", () => {
  const [known, odd, worse] = placesOf(
    ["notebook", "nothing", "constructor"].map((icon) => ({ title: icon, icon, path: `/x/${icon}` })),
  );
  expect(odd?.icon).toBe(worse?.icon);
  expect(known?.icon).not.toBe(odd?.icon);
});
