/** Where the graph is seen from: a point of it at `(px, py)` on the screen is `(px - x) / zoom, (py - y) / zoom`. */
import { CARD } from "./fold";
import type { Item, Rect } from "./scene";

export interface View {
  readonly x: number;
  readonly y: number;
  readonly zoom: number;
}

export interface Size {
  readonly width: number;
  readonly height: number;
}

export const ZOOM_MIN = 0.002;
export const ZOOM_MAX = 2.5;
/** From here on cards can be read: name and second line. */
export const ZOOM_READ = 0.55;
/** From here on names can, written larger than the cards would have it. Below are blocks of colour. */
export const ZOOM_NAMES = 0.22;
const FIT_MAX = 1.1;
const FIT_PAD = 28;
/** The toolbar stands above. */
const FIT_TOP = 52;

export function pan(view: View, dx: number, dy: number): View {
  return { ...view, x: view.x + dx, y: view.y + dy };
}

/** Zoom by a factor; what is under the point stays under it. */
export function zoomAt(view: View, px: number, py: number, factor: number): View {
  const zoom = Math.min(ZOOM_MAX, Math.max(ZOOM_MIN, view.zoom * factor));
  const by = zoom / view.zoom;
  return { x: px - (px - view.x) * by, y: py - (py - view.y) * by, zoom };
}

/** All of a rectangle, as large as it fits, in the middle. */
export function fitted(rect: Rect, size: Size, most = FIT_MAX): View {
  const [width, height] = [Math.max(1, rect.x1 - rect.x0), Math.max(1, rect.y1 - rect.y0)];
  const room = { width: Math.max(40, size.width - 2 * FIT_PAD), height: Math.max(40, size.height - FIT_PAD - FIT_TOP) };
  const zoom = Math.max(ZOOM_MIN, Math.min(most, room.width / width, room.height / height));
  return pan(centred(rect, size, zoom), 0, (FIT_TOP - FIT_PAD) / 2);
}

export function centred(rect: Rect, size: Size, zoom: number): View {
  return {
    x: size.width / 2 - ((rect.x0 + rect.x1) / 2) * zoom,
    y: size.height / 2 - ((rect.y0 + rect.y1) / 2) * zoom,
    zoom,
  };
}

/** As little movement as brings a rectangle wholly into view; the view itself if it is there already. */
export function reveal(view: View, rect: Rect, size: Size): View {
  const shift = (low: number, high: number, room: number): number => {
    if (high - low > room - 2 * FIT_PAD) return room / 2 - (low + high) / 2;
    if (low < FIT_PAD) return FIT_PAD - low;
    return high > room - FIT_PAD ? room - FIT_PAD - high : 0;
  };
  const dx = shift(rect.x0 * view.zoom + view.x, rect.x1 * view.zoom + view.x, size.width);
  const dy = shift(rect.y0 * view.zoom + view.y, rect.y1 * view.zoom + view.y, size.height);
  return dx === 0 && dy === 0 ? view : pan(view, dx, dy);
}

/**
 * Where to look to follow what runs: all of it if it can be read so, else its middle at the zoom there is. The middle is
 * the median, so that one straggler does not hold the view back.
 */
export function follow(view: View, running: readonly Item[], size: Size): View {
  if (running.length === 0) return view;
  const all = boundsOf(running);
  const whole = fitted(all, size, 1);
  if (whole.zoom >= ZOOM_READ)
    return view.zoom <= whole.zoom && view.zoom >= ZOOM_READ ? reveal(view, all, size) : whole;
  const median = (of: (item: Item) => number): number => {
    const values = running.map(of).sort((a, b) => a - b);
    return values[values.length >> 1] as number;
  };
  const [x, y] = [median((item) => item.x + item.width / 2), median((item) => item.y + item.height / 2)];
  return centred({ x0: x, y0: y, x1: x, y1: y }, size, view.zoom);
}

export function boundsOf(items: readonly Item[]): Rect {
  let [x0, y0] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  let [x1, y1] = [Number.NEGATIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const item of items) {
    x0 = Math.min(x0, item.x);
    y0 = Math.min(y0, item.y);
    x1 = Math.max(x1, item.x + item.width);
    y1 = Math.max(y1, item.y + item.height);
  }
  return items.length === 0 ? { x0: 0, y0: 0, x1: 0, y1: 0 } : { x0, y0, x1, y1 };
}

/** What has to be seen to see a step: of an opened fan-out, its head. */
export function rectOf(item: Item): Rect {
  return boundsOf([item.role === "box" ? { ...item, ...CARD } : item]);
}

export function seen(view: View, size: Size): Rect {
  return {
    x0: -view.x / view.zoom,
    y0: -view.y / view.zoom,
    x1: (size.width - view.x) / view.zoom,
    y1: (size.height - view.y) / view.zoom,
  };
}

/** Between two views: zoom changes by equal factors, so that neither end of a long flight rushes. */
export function between(from: View, to: View, part: number, size: Size): View {
  if (part >= 1) return to;
  const eased = 1 - (1 - part) ** 3;
  const zoom = from.zoom * (to.zoom / from.zoom) ** eased;
  const middle = (view: View, room: number, at: number): number => (room / 2 - at) / view.zoom;
  const blend = (a: number, b: number): number => a + (b - a) * eased;
  const x = blend(middle(from, size.width, from.x), middle(to, size.width, to.x));
  const y = blend(middle(from, size.height, from.y), middle(to, size.height, to.y));
  return { x: size.width / 2 - x * zoom, y: size.height / 2 - y * zoom, zoom };
}
