import { LOOKS, type Look } from "../state";
import { lookOf } from "./look";
import type { Item, Rect, Scene } from "./scene";
import type { GraphStore } from "./store";
import type { Theme } from "./theme";

export const MINIMAP = { width: 160, height: 96 };
const PAD = 4;

/** How the whole scene lies in the small picture. */
export function miniView(scene: Scene): { readonly x: number; readonly y: number; readonly zoom: number } {
  const [width, height] = [MINIMAP.width - 2 * PAD, MINIMAP.height - 2 * PAD];
  const zoom = Math.min(width / Math.max(1, scene.width), height / Math.max(1, scene.height));
  return { zoom, x: (MINIMAP.width - scene.width * zoom) / 2, y: (MINIMAP.height - scene.height * zoom) / 2 };
}

/** The whole graph as dots, and a frame around what is seen of it. */
export function drawMinimap(
  ctx: CanvasRenderingContext2D,
  ratio: number,
  scene: Scene,
  store: GraphStore,
  theme: Theme,
  shown: Rect,
): void {
  const { x, y, zoom } = miniView(scene);
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = theme.panel;
  ctx.fillRect(0, 0, MINIMAP.width, MINIMAP.height);
  const groups = new Map<Look, Item[]>(LOOKS.map((look) => [look, []]));
  for (const item of scene.items) {
    const step = store.get(item.id);
    if (step !== undefined && item.role !== "box") groups.get(lookOf(step))?.push(item);
  }
  for (const [look, items] of groups) {
    ctx.globalAlpha = look === "pending" ? 0.45 : 1;
    ctx.fillStyle = theme.look[look];
    for (const item of items) {
      const [width, height] = [Math.max(1, item.width * zoom), Math.max(1, item.height * zoom)];
      ctx.fillRect(x + item.x * zoom, y + item.y * zoom, width, height);
    }
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = 1.5;
  const [left, top] = [Math.max(1, x + shown.x0 * zoom), Math.max(1, y + shown.y0 * zoom)];
  const right = Math.min(MINIMAP.width - 1, x + shown.x1 * zoom);
  const bottom = Math.min(MINIMAP.height - 1, y + shown.y1 * zoom);
  ctx.strokeRect(left, top, Math.max(2, right - left), Math.max(2, bottom - top));
}
