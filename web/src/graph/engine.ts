/**
 * The part of the graph that moves: camera, canvas and the layer of buttons, outside React, at most one picture per
 * frame of the screen. While the view moves only the canvas is painted; the buttons come back when it rests, so that
 * panning never waits for the page's layout.
 */
import {
  between,
  boundsOf,
  centred,
  fitted,
  follow,
  pan,
  rectOf,
  reveal,
  type Size,
  seen,
  type View,
  ZOOM_READ,
  zoomAt,
} from "./camera";
import { draw } from "./draw";
import { drawMinimap, MINIMAP } from "./drawMinimap";
import type { Frame } from "./frame";
import { heldView } from "./heldView";
import { isRunning } from "./look";
import type { Item, Scene } from "./scene";
import { buttonsOf, type Cards, type Engine, focusedIn, type Marks, type Stage } from "./stage";
import type { GraphStore } from "./store";
import { hasReducedMotion, onThemeChange, readTheme } from "./theme";
import type { StepNo } from "./types";

/** Buttons cost layout and style: more than these are painted only. */
export const BUTTONS_MAX = 120;
const REST_MS = 140;
const FLIGHT_MS = 220;
const MINIMAP_MS = 200;
const FOLLOW_MS = 600;
const TICK_MS = 1_000;
const ZOOM_FOUND = 0.8;

export function createEngine(stage: Stage, store: GraphStore, putUp: (cards: Cards) => void): Engine {
  const ctx = stage.canvas.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
  const mini = stage.minimap.getContext("2d", { alpha: false }) as CanvasRenderingContext2D;
  let theme = readTheme();
  let size: Size = { width: 0, height: 0 };
  let ratio = 1;
  let scene: Scene | null = null;
  let view: View = { x: 0, y: 0, zoom: 1 };
  let marks: Marks = { line: null, critical: null, selected: null, isPlan: false, isFollowing: false };
  let covered: ReadonlySet<StepNo> = new Set();
  let up = "";
  let flight: { from: View; to: View; began: number } | null = null;
  /** The view was not moved since the whole graph was fitted into it. */
  let isWhole = true;
  let anchor: StepNo | null = null;
  let movedAt = Number.NEGATIVE_INFINITY;
  let miniAt = 0;
  let followedAt = 0;
  let asked = 0;
  let restTimer = 0;

  const ask = (): void => {
    if (asked === 0) asked = requestAnimationFrame(paint);
  };
  const moveTo = (next: View): void => {
    view = next;
    movedAt = performance.now();
    ask();
  };
  const flyTo = (next: View): void => {
    if (hasReducedMotion() || size.width === 0) {
      flight = null;
      moveTo(next);
    } else {
      flight = { from: view, to: next, began: performance.now() };
      ask();
    }
  };
  /** By hand: a flight under way stops where it is. */
  const drag = (next: View): void => {
    flight = null;
    isWhole = false;
    moveTo(next);
  };

  const fly = (now: number): void => {
    if (flight === null) return;
    const part = (now - flight.began) / FLIGHT_MS;
    view = between(flight.from, flight.to, Math.max(0, part), size);
    movedAt = now;
    if (part >= 1) flight = null;
    else ask();
  };
  const chase = (now: number, shown: Scene): void => {
    if (!marks.isFollowing || flight !== null || now - followedAt < FOLLOW_MS) return;
    followedAt = now;
    const running = shown.items.filter((item) => item.role !== "box" && isRunning(store.get(item.id)));
    const next = follow(view, running, size);
    if (next !== view) {
      isWhole = false;
      flyTo(next);
    }
  };
  const placeButtons = (now: number, visible: readonly Item[]): void => {
    const isMoving = now - movedAt < REST_MS;
    // Hidden and not taken away: the step that has the focus keeps it.
    stage.layer.style.opacity = isMoving ? "0" : "1";
    stage.layer.style.pointerEvents = isMoving ? "none" : "auto";
    if (isMoving) {
      clearTimeout(restTimer);
      restTimer = window.setTimeout(ask, REST_MS);
      return;
    }
    stage.layer.style.transform = `translate(${view.x}px,${view.y}px) scale(${view.zoom})`;
    const canRead = view.zoom >= ZOOM_READ && visible.length <= BUTTONS_MAX;
    const items = buttonsOf(canRead ? visible : [], scene, [marks.selected, focusedIn(stage.layer)]);
    const key = `${canRead} ${items.map((item) => `${item.id}@${item.x},${item.y}`).join()}`;
    if (key === up) return;
    up = key;
    putUp({ items, areGhosts: !canRead });
  };
  function paint(): void {
    asked = 0;
    if (scene === null || size.width === 0) return;
    const now = performance.now();
    fly(now);
    chase(now, scene);
    const shown = seen(view, size);
    const visible = scene.within(shown);
    placeButtons(now, visible);
    const isMoving = now - movedAt < REST_MS;
    const frame: Frame = {
      ...{ scene, store, view, size, ratio, theme, shown, ...marks },
      covered: isMoving ? new Set() : covered,
      now: Date.now(),
    };
    draw(ctx, frame, visible);
    if (now - miniAt > MINIMAP_MS && stage.minimap.clientWidth > 0) {
      miniAt = now;
      // Who sees all of it needs no map.
      const isAll = shown.x0 <= 0 && shown.y0 <= 0 && shown.x1 >= scene.width && shown.y1 >= scene.height;
      stage.minimap.style.visibility = isAll ? "hidden" : "visible";
      drawMinimap(mini, ratio, scene, store, theme, shown);
    }
  }

  const resize = (): void => {
    const [width, height] = [stage.canvas.clientWidth, stage.canvas.clientHeight];
    if (width === 0 || height === 0) return;
    ratio = devicePixelRatio;
    size = { width, height };
    stage.canvas.width = Math.round(width * ratio);
    stage.canvas.height = Math.round(height * ratio);
    stage.minimap.width = MINIMAP.width * ratio;
    stage.minimap.height = MINIMAP.height * ratio;
    // A flight under way leads to places of the former size.
    const selected = marks.selected === null ? undefined : scene?.byId.get(marks.selected);
    const next = isWhole && scene !== null ? whole(scene) : (flight?.to ?? view);
    flight = null;
    // An inspector that opens beside the graph must not cover the step that it was opened for.
    moveTo(isWhole || selected === undefined ? next : reveal(next, rectOf(selected), size));
    movedAt = Number.NEGATIVE_INFINITY;
    ask();
  };
  const whole = (of: Scene): View => fitted({ x0: 0, y0: 0, x1: of.width, y1: of.height }, size);
  const observer = new ResizeObserver(resize);
  observer.observe(stage.canvas);
  resize();
  const leave = [
    store.subscribeAll(ask),
    onThemeChange(() => {
      theme = readTheme();
      miniAt = 0;
      ask();
    }),
  ];
  // Durations count on, the minimap catches up, and what runs may have left the view.
  const ticker = window.setInterval(ask, TICK_MS);

  return {
    show: (next) => {
      const before = scene;
      scene = next;
      miniAt = 0;
      if (size.width === 0) return;
      if (before === null) {
        moveTo(whole(next));
        movedAt = Number.NEGATIVE_INFINITY;
      } else if (isWhole) flyTo(whole(next));
      else moveTo(heldView(view, before, next, anchor ?? marks.selected, size));
      anchor = null;
    },
    mark: (next) => {
      if (next.isFollowing && !marks.isFollowing) followedAt = 0;
      marks = next;
      ask();
    },
    cover: (ids) => {
      covered = ids;
      ask();
    },
    hold: (id) => {
      isWhole = false;
      anchor = id;
    },
    fit: () => {
      isWhole = true;
      if (scene !== null) flyTo(whole(scene));
    },
    fitTo: (ids) => {
      const items = [...ids].map((id) => scene?.byId.get(id)).filter((item) => item !== undefined);
      if (items.length === 0) return;
      isWhole = false;
      flyTo(fitted(boundsOf(items), size, 1));
    },
    zoom: (factor, px = size.width / 2, py = size.height / 2) => drag(zoomAt(view, px, py, factor)),
    pan: (dx, dy) => drag(pan(view, dx, dy)),
    centre: (x, y) => drag(centred({ x0: x, y0: y, x1: x, y1: y }, size, view.zoom)),
    reveal: (id, isRead = false) => {
      const item = scene?.byId.get(id);
      if (item === undefined) return;
      // From where the view will be, should it be flying there already.
      const from = flight?.to ?? view;
      const isFar = isRead && from.zoom < ZOOM_READ;
      const next = isFar ? centred(rectOf(item), size, ZOOM_FOUND) : reveal(from, rectOf(item), size);
      if (next === from) return;
      isWhole = false;
      flyTo(next);
    },
    itemAt: (px, py) => scene?.at((px - view.x) / view.zoom, (py - view.y) / view.zoom),
    view: () => view,
    stop: () => {
      cancelAnimationFrame(asked);
      asked = -1;
      clearTimeout(restTimer);
      clearInterval(ticker);
      observer.disconnect();
      for (const go of leave) go();
    },
  };
}
