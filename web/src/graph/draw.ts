/**
 * One picture of the graph. What is drawn depends on how near it is: blocks of colour, names, or whole cards. Where
 * buttons stand in for cards at reading zoom, the canvas leaves them out.
 */
import { LOOKS, type Look } from "../state";
import { ZOOM_NAMES, ZOOM_READ } from "./camera";
import { drawBar, drawCard } from "./drawCards";
import { drawEdges } from "./drawEdges";
import { DIMMED, type Frame, isDimmed, PLANNED, stepOf } from "./frame";
import { lookOf } from "./look";
import type { Item } from "./scene";

export function draw(ctx: CanvasRenderingContext2D, frame: Frame, visible: readonly Item[]): void {
  const { view, size, ratio, theme } = frame;
  ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
  ctx.fillStyle = theme.bg;
  ctx.fillRect(0, 0, size.width, size.height);
  ctx.setTransform(ratio * view.zoom, 0, 0, ratio * view.zoom, ratio * view.x, ratio * view.y);
  drawEdges(ctx, frame);
  drawBoxes(ctx, frame, visible);
  if (view.zoom < ZOOM_NAMES) drawBlocks(ctx, frame, visible);
  else {
    const canRead = view.zoom >= ZOOM_READ;
    for (const item of visible) if (!frame.covered.has(item.id)) drawCard(ctx, frame, item, canRead);
  }
}

/** The frames of opened fan-outs. */
function drawBoxes(ctx: CanvasRenderingContext2D, frame: Frame, visible: readonly Item[]): void {
  for (const item of visible) {
    if (item.role !== "box") continue;
    ctx.globalAlpha = isDimmed(frame, item.id) ? DIMMED : 1;
    ctx.fillStyle = frame.theme.bg;
    ctx.strokeStyle = frame.theme.line;
    ctx.lineWidth = Math.max(1, 1 / frame.view.zoom);
    ctx.beginPath();
    ctx.roundRect(item.x, item.y, item.width, item.height, 10);
    ctx.fill();
    ctx.stroke();
  }
  ctx.globalAlpha = 1;
}

/** From far away a step is its colour. Sorted by colour, since changing it costs more than a rectangle. */
function drawBlocks(ctx: CanvasRenderingContext2D, frame: Frame, visible: readonly Item[]): void {
  const bright = new Map<Look, Item[]>(LOOKS.map((look) => [look, []]));
  const dimmed = new Map<Look, Item[]>(LOOKS.map((look) => [look, []]));
  const fans: Item[] = [];
  for (const item of visible) {
    const step = stepOf(frame, item);
    if (step === undefined || item.role === "box") continue;
    const look = frame.isPlan ? "pending" : lookOf(step);
    const isFaint = isDimmed(frame, item.id) && frame.critical?.has(item.id) !== true;
    (isFaint ? dimmed : bright).get(look)?.push(item);
    if (step.fan !== undefined && !frame.isPlan) fans.push(item);
  }
  const onePixel = 1 / frame.view.zoom;
  for (const look of LOOKS) {
    ctx.fillStyle = frame.theme.look[look];
    for (const [group, alpha] of [
      [dimmed, DIMMED],
      [bright, look === "pending" ? PLANNED : 1],
    ] as const) {
      ctx.globalAlpha = alpha;
      for (const item of group.get(look) ?? []) {
        ctx.fillRect(item.x, item.y, Math.max(item.width, onePixel), Math.max(item.height, onePixel));
      }
    }
  }
  for (const item of fans) {
    const fan = item.role === "card" ? stepOf(frame, item)?.fan : undefined;
    ctx.globalAlpha = isDimmed(frame, item.id) ? DIMMED : 1;
    if (fan !== undefined) drawBar(ctx, frame, fan, item, item.height - 4);
  }
  ctx.globalAlpha = 1;
  const chosen = frame.selected === null ? undefined : frame.scene.byId.get(frame.selected);
  if (chosen !== undefined) {
    ctx.strokeStyle = frame.theme.accent;
    ctx.lineWidth = 2.5 * onePixel;
    ctx.strokeRect(chosen.x - onePixel, chosen.y - onePixel, chosen.width + 2 * onePixel, chosen.height + 2 * onePixel);
  }
}
