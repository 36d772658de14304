/** Key bindings: one listener for the page, the newest binding first, none while text is edited. */

export type Handler = (event: KeyboardEvent) => void;
/** `j`, `Enter`, `shift+x`, `mod+k` (⌘ or Ctrl), or two keys one after the other: `g j`. */
export type Bindings = Readonly<Record<string, Handler | undefined>>;

interface Layer {
  readonly bindings: () => Bindings;
}

const SEQUENCE_MS = 1_200;
const layers: Layer[] = [];
let prefix = "";
let prefixAt = 0;

export function addLayer(bindings: () => Bindings): () => void {
  const layer = { bindings };
  if (layers.length === 0) addEventListener("keydown", hear);
  layers.push(layer);
  return () => {
    layers.splice(layers.indexOf(layer), 1);
    if (layers.length === 0) removeEventListener("keydown", hear);
  };
}

/** How a binding names this press. A letter with shift is `shift+x`; a sign that needs shift (`?`) is only itself. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "metaKey" | "ctrlKey" | "altKey" | "shiftKey">): string {
  const isLetter = /^[a-z]$/i.test(event.key);
  const key = isLetter ? event.key.toLowerCase() : event.key;
  const mod = event.metaKey || event.ctrlKey ? "mod+" : "";
  const alt = event.altKey ? "alt+" : "";
  const shift = event.shiftKey && (isLetter || event.key.length > 1) ? "shift+" : "";
  return mod + alt + shift + key;
}

export function isWriting(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName);
}

/** The handler for a press after a prefix, or whether the press itself begins something. */
export function resolve(all: readonly Bindings[], before: string, name: string): Handler | "prefix" | undefined {
  const names = before === "" ? [name] : [`${before} ${name}`, name];
  for (const wanted of names) {
    for (const bindings of all.toReversed()) {
      const handler = bindings[wanted];
      if (handler !== undefined) return handler;
    }
  }
  const begins = all.some((bindings) => Object.keys(bindings).some((one) => one.startsWith(`${name} `)));
  return begins ? "prefix" : undefined;
}

function hear(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.isComposing) return;
  const name = nameOf(event);
  const isPlain = !name.startsWith("mod+");
  if (isPlain && (isWriting(event.target) || isCovered())) return;
  if ((name === "Enter" || name === " ") && isPressed(event.target)) return;
  const before = event.timeStamp - prefixAt < SEQUENCE_MS ? prefix : "";
  const found = resolve(layers.map((layer) => layer.bindings()), before, name); // biome-ignore format: one thought
  prefix = "";
  if (found === "prefix") {
    prefix = name;
    prefixAt = event.timeStamp;
  } else if (found !== undefined) {
    event.preventDefault();
    found(event);
  }
}

/** Whether Enter and the space bar mean something to what has the focus. */
function isPressed(target: EventTarget | null): boolean {
  return target instanceof Element && target.closest("a[href],button,summary,[role=tab],[role=option]") !== null;
}

/** Whether something lies over the page that has keys of its own. */
function isCovered(): boolean {
  return document.querySelector("[role=dialog],[role=alertdialog],[role=menu]:popover-open") !== null;
}
