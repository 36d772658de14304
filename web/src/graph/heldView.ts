import { fitted, pan, type Size, seen, type View } from "./camera";
import type { Item, Scene } from "./scene";
import type { StepNo } from "./types";

/** After a new layout, the step that was looked at stays where it was on the screen. */
export function heldView(view: View, before: Scene, after: Scene, selected: StepNo | null, size: Size): View {
  const shown = before.within(seen(view, size));
  const [x, y] = [(size.width / 2 - view.x) / view.zoom, (size.height / 2 - view.y) / view.zoom];
  const away = (item: Item): number => Math.hypot(item.x + item.width / 2 - x, item.y + item.height / 2 - y);
  const candidates = shown.filter((item) => after.byId.has(item.id)).sort((a, b) => away(a) - away(b));
  const anchor = candidates.find((item) => item.id === selected) ?? candidates[0];
  const moved = anchor === undefined ? undefined : after.byId.get(anchor.id);
  if (anchor === undefined || moved === undefined) {
    return fitted({ x0: 0, y0: 0, x1: after.width, y1: after.height }, size);
  }
  return pan(view, (anchor.x - moved.x) * view.zoom, (anchor.y - moved.y) * view.zoom);
}
