import type { Look } from "../state";
import { BOX_HEAD } from "./fold";
import { type Frame, isDimmed, stepOf } from "./frame";
import { ICON } from "./icons";
import { lookOf } from "./look";
import type { Item } from "./scene";
import type { Step } from "./store";
import { BAR_ORDER, metaText } from "./text";
import type { Fan } from "./types";

const RADIUS = 8;
const FONT = '"Inter Variable", Inter, ui-sans-serif, system-ui, sans-serif';
/** The mean width of a letter of Inter, in its size: measuring 400 names in every frame would cost more than it is worth. */
const LETTER = 0.56;
const NAME_SIZE_MAX = 26;

const icons = new Map<Look, Path2D>();

function iconOf(look: Look): Path2D {
  const known = icons.get(look);
  if (known !== undefined) return known;
  const path = new Path2D(ICON[look]);
  icons.set(look, path);
  return path;
}

function clipped(text: string, width: number, size: number): string {
  const letters = Math.floor(width / (size * LETTER));
  return text.length <= letters ? text : `${text.slice(0, Math.max(1, letters - 1))}…`;
}

/** The outline of a card: dashed while it is a plan or waits for a person, double for a fan-out. */
export function drawCard(ctx: CanvasRenderingContext2D, frame: Frame, item: Item, canRead: boolean): void {
  const step = stepOf(frame, item);
  if (step === undefined) return;
  const { theme, view } = frame;
  const look = lookOf(step);
  // The same colours as the buttons have, which must stay legible: what is dim is grey and not see-through.
  const isFaint = isDimmed(frame, item.id);
  const colour = isFaint ? theme.line : frame.isPlan ? theme.dim : theme.look[look];
  ctx.strokeStyle = frame.critical?.has(item.id) ? theme.look.retrying : colour;
  ctx.lineWidth = 1.2;
  ctx.fillStyle = theme.panel;
  if (item.role === "card" && step.fan !== undefined) outline(ctx, item.x + 4, item.y + 4, item.width, item.height);
  const isDashed = frame.isPlan || look === "pending" || look === "waiting";
  if (isDashed) ctx.setLineDash([4, 3]);
  if (item.id === frame.selected) {
    ctx.strokeStyle = theme.accent;
    ctx.lineWidth = 2.4;
  }
  outline(ctx, item.x, item.y, item.width, item.role === "box" ? BOX_HEAD - 8 : item.height);
  ctx.setLineDash([]);
  if (!frame.isPlan) {
    ctx.fillStyle = colour;
    ctx.fillRect(item.x, item.y + 5, 3, (item.role === "box" ? BOX_HEAD - 8 : item.height) - 10);
  }
  if (canRead) writeFully(ctx, frame, item, step, colour);
  else writeName(ctx, frame, item, step, Math.min(NAME_SIZE_MAX, 10.5 / view.zoom));
}

function outline(ctx: CanvasRenderingContext2D, x: number, y: number, width: number, height: number): void {
  ctx.beginPath();
  ctx.roundRect(x, y, width, height, RADIUS);
  ctx.fill();
  ctx.stroke();
}

/** What is done, or being done, is written in black; what is planned or beside the point in grey. */
function inkOf(frame: Frame, item: Item, step: Step): string {
  const isPlanned = !frame.isPlan && lookOf(step) === "pending" && item.id !== frame.selected;
  return isPlanned || isDimmed(frame, item.id) ? frame.theme.dim : frame.theme.fg;
}

function nameOf(step: Step): string {
  return step.fan?.total == null ? step.label : `${step.label} ×${step.fan.total}`;
}

function writeName(ctx: CanvasRenderingContext2D, frame: Frame, item: Item, step: Step, size: number): void {
  const height = item.role === "box" ? BOX_HEAD - 8 : item.height;
  ctx.font = `500 ${size}px ${FONT}`;
  ctx.textBaseline = "middle";
  ctx.fillStyle = inkOf(frame, item, step);
  ctx.fillText(clipped(nameOf(step), item.width - 22, size), item.x + 13, item.y + height / 2 + 1);
  if (item.role === "card" && step.fan !== undefined) drawBar(ctx, frame, step.fan, item, 5);
}

function writeFully(ctx: CanvasRenderingContext2D, frame: Frame, item: Item, step: Step, colour: string): void {
  const { theme } = frame;
  const isHead = item.role === "box";
  const middle = item.y + (isHead ? (BOX_HEAD - 8) / 2 : item.height / 2);
  ctx.textBaseline = "middle";
  if (!frame.isPlan) {
    ctx.save();
    ctx.translate(item.x + 11, middle - 7.5);
    ctx.scale(15 / 16, 15 / 16);
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.6;
    ctx.stroke(iconOf(lookOf(step)));
    ctx.restore();
  }
  const left = item.x + (frame.isPlan ? 14 : 34);
  const width = Math.min(item.width, 400) - (left - item.x) - (step.fan === undefined ? 10 : 28);
  ctx.font = `500 12px ${FONT}`;
  ctx.fillStyle = inkOf(frame, item, step);
  ctx.fillText(clipped(nameOf(step), width, 12), left, middle - 8);
  ctx.font = `400 10.5px ${FONT}`;
  ctx.fillStyle = theme.dim;
  ctx.fillText(clipped(metaText(step, frame.isPlan, frame.now), width, 10.5), left, middle + 8);
  if (item.role === "card" && step.fan !== undefined) drawBar(ctx, frame, step.fan, item, 3);
}

/** A fan-out's children by state, along the lower edge. */
export function drawBar(ctx: CanvasRenderingContext2D, frame: Frame, fan: Fan, item: Item, height: number): void {
  let known = 0;
  for (const look of BAR_ORDER) known += fan.by[look] ?? 0;
  const all = Math.max(known, fan.total ?? 0);
  if (all === 0) return;
  const [left, width] = [item.x + 6, item.width - 12];
  let at = left;
  for (const look of BAR_ORDER) {
    const part = ((fan.by[look] ?? 0) / all) * width;
    if (part === 0) continue;
    ctx.fillStyle = look === "pending" ? frame.theme.line : frame.theme.look[look];
    ctx.fillRect(at, item.y + item.height - height - 2, part, height);
    at += part;
  }
}
