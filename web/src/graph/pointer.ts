/** Mouse, pen and fingers: drag to pan, wheel or pinch to zoom, click to select. */

import type { Item } from "./scene";
import type { Engine } from "./stage";

/** A hand is never quite still: less than this is a click. */
const CLICK_PX = 4;
const WHEEL_RATE = 0.0015;
/** A trackpad's pinch comes as small steps of a wheel with Ctrl. */
const PINCH_RATE = 0.01;

interface Point {
  x: number;
  y: number;
}

export interface PointerTarget {
  onClick(item: Item | undefined): void;
  onDoubleClick(item: Item): void;
  /** The view was taken by hand. */
  onTake(): void;
}

export function listenToPointer(box: HTMLElement, engine: Engine, target: PointerTarget): () => void {
  const down = new Map<number, Point>();
  let travelled = 0;
  const place = (event: MouseEvent): Point => {
    const rect = box.getBoundingClientRect();
    return { x: event.clientX - rect.left, y: event.clientY - rect.top };
  };
  const isOurs = (event: Event): boolean => (event.target as Element).closest("[data-panel]") === null;

  const onWheel = (event: WheelEvent): void => {
    if (!isOurs(event)) return;
    event.preventDefault();
    target.onTake();
    const { x, y } = place(event);
    if (event.shiftKey) engine.pan(-(event.deltaX || event.deltaY), 0);
    else engine.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? PINCH_RATE : WHEEL_RATE)), x, y);
  };
  const onDown = (event: PointerEvent): void => {
    if (!isOurs(event) || event.button !== 0) return;
    if (down.size === 0) travelled = 0;
    down.set(event.pointerId, place(event));
  };
  const onMove = (event: PointerEvent): void => {
    const before = down.get(event.pointerId);
    if (before === undefined) return;
    const now = place(event);
    const [dx, dy] = [now.x - before.x, now.y - before.y];
    travelled += Math.abs(dx) + Math.abs(dy);
    const other = [...down].find(([id]) => id !== event.pointerId)?.[1];
    down.set(event.pointerId, now);
    if (travelled <= CLICK_PX) return;
    target.onTake();
    if (other === undefined) engine.pan(dx, dy);
    else pinch(engine, before, now, other);
  };
  const onUp = (event: PointerEvent): void => {
    if (!down.delete(event.pointerId) || down.size > 0) return;
    const isOnButton = (event.target as Element).closest?.("button") !== null;
    if (event.type === "pointercancel" || travelled > CLICK_PX || isOnButton) return;
    const { x, y } = place(event);
    target.onClick(engine.itemAt(x, y));
  };
  /** A drag that ended on a button was no click on it. */
  const onClick = (event: MouseEvent): void => {
    if (travelled > CLICK_PX && isOurs(event) && event.detail > 0) event.stopPropagation();
  };
  const onDoubleClick = (event: MouseEvent): void => {
    const { x, y } = place(event);
    const item = isOurs(event) ? engine.itemAt(x, y) : undefined;
    if (item !== undefined) target.onDoubleClick(item);
  };
  box.addEventListener("wheel", onWheel, { passive: false });
  box.addEventListener("pointerdown", onDown);
  box.addEventListener("click", onClick, { capture: true });
  box.addEventListener("dblclick", onDoubleClick);
  window.addEventListener("pointermove", onMove);
  window.addEventListener("pointerup", onUp);
  window.addEventListener("pointercancel", onUp);
  return () => {
    box.removeEventListener("wheel", onWheel);
    box.removeEventListener("pointerdown", onDown);
    box.removeEventListener("click", onClick, { capture: true });
    box.removeEventListener("dblclick", onDoubleClick);
    window.removeEventListener("pointermove", onMove);
    window.removeEventListener("pointerup", onUp);
    window.removeEventListener("pointercancel", onUp);
  };
}

/** Two fingers: zoom by how far apart they went, around their middle, and pan with it. */
function pinch(engine: Engine, before: Point, now: Point, other: Point): void {
  const apart = (a: Point): number => Math.max(1, Math.hypot(a.x - other.x, a.y - other.y));
  engine.pan((now.x - before.x) / 2, (now.y - before.y) / 2);
  engine.zoom(apart(now) / apart(before), (now.x + other.x) / 2, (now.y + other.y) / 2);
}
