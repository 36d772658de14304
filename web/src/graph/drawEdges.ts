import { ZOOM_NAMES } from "./camera";
import { DIMMED, type Frame, isDimmed } from "./frame";
import { lookOf } from "./look";
import type { Item, Scene } from "./scene";

/** The rectangle that each edge stays in: those outside of the view are not drawn. */
const reaches = new WeakMap<Scene, Float32Array>();
/**
 * From far away edges are straight and never change. They are painted once for each zoom and then copied: thousands of
 * thin lines are what a canvas is slowest at.
 */
const pictures = new WeakMap<Scene, Picture>();
/** A picture of the whole scene that is larger than this is not worth its memory. */
const PICTURE_PX_MAX = 8_000_000;

interface Picture {
  readonly key: string;
  readonly canvas: HTMLCanvasElement;
}

interface Ends {
  readonly ax: number;
  readonly ay: number;
  readonly bx: number;
  readonly by: number;
}

function endsOf(scene: Scene, e: number): Ends {
  const from = scene.items[scene.pairs[2 * e] as number] as Item;
  const to = scene.items[scene.pairs[2 * e + 1] as number] as Item;
  return scene.direction === "right"
    ? { ax: from.x + from.width, ay: from.y + from.height / 2, bx: to.x, by: to.y + to.height / 2 }
    : { ax: from.x + from.width / 2, ay: from.y + from.height, bx: to.x + to.width / 2, by: to.y };
}

/** Along its bends: a curve from rank to rank, straight through a rank. */
function addEdge(path: Path2D, scene: Scene, e: number, isCurved: boolean): void {
  const { ax, ay, bx, by } = endsOf(scene, e);
  const { bends, bendsFrom } = scene.layout;
  let [x, y] = [ax, ay];
  path.moveTo(x, y);
  const curveTo = (toX: number, toY: number): void => {
    if (!isCurved || (scene.direction === "right" ? y === toY : x === toX)) path.lineTo(toX, toY);
    else if (scene.direction === "right") path.bezierCurveTo((x + toX) / 2, y, (x + toX) / 2, toY, toX, toY);
    else path.bezierCurveTo(x, (y + toY) / 2, toX, (y + toY) / 2, toX, toY);
  };
  for (let i = bendsFrom[e] as number; i < (bendsFrom[e + 1] as number); i += 4) {
    curveTo(bends[i] as number, bends[i + 1] as number);
    [x, y] = [bends[i + 2] as number, bends[i + 3] as number];
    path.lineTo(x, y);
  }
  curveTo(bx, by);
}

function reachOf(scene: Scene): Float32Array {
  const known = reaches.get(scene);
  if (known !== undefined) return known;
  const count = scene.pairs.length / 2;
  const reach = new Float32Array(4 * count);
  const { bends, bendsFrom } = scene.layout;
  for (let e = 0; e < count; e++) {
    const { ax, ay, bx, by } = endsOf(scene, e);
    let [x0, y0, x1, y1] = [Math.min(ax, bx), Math.min(ay, by), Math.max(ax, bx), Math.max(ay, by)];
    for (let i = bendsFrom[e] as number; i < (bendsFrom[e + 1] as number); i += 2) {
      [x0, x1] = [Math.min(x0, bends[i] as number), Math.max(x1, bends[i] as number)];
      [y0, y1] = [Math.min(y0, bends[i + 1] as number), Math.max(y1, bends[i + 1] as number)];
    }
    reach.set([x0, y0, x1, y1], 4 * e);
  }
  reaches.set(scene, reach);
  return reach;
}

function straightPath(scene: Scene): Path2D {
  const path = new Path2D();
  for (let e = 0; e < scene.pairs.length / 2; e++) addEdge(path, scene, e, false);
  return path;
}

function drawFromFar(ctx: CanvasRenderingContext2D, frame: Frame): void {
  const { scene, view, ratio, theme } = frame;
  const scale = view.zoom * ratio;
  const [width, height] = [Math.ceil(scene.width * scale) + 2, Math.ceil(scene.height * scale) + 2];
  const paint = (on: CanvasRenderingContext2D): void => {
    on.lineWidth = 0.8 / view.zoom;
    on.strokeStyle = theme.dim;
    on.globalAlpha = 0.2;
    on.stroke(straightPath(scene));
    on.globalAlpha = 1;
  };
  if (width * height > PICTURE_PX_MAX) {
    paint(ctx);
    return;
  }
  const key = `${scale} ${theme.dim}`;
  let picture = pictures.get(scene);
  if (picture?.key !== key) {
    const canvas = picture?.canvas ?? document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const on = canvas.getContext("2d") as CanvasRenderingContext2D;
    on.setTransform(scale, 0, 0, scale, 1, 1);
    paint(on);
    picture = { key, canvas };
    pictures.set(scene, picture);
  }
  ctx.save();
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.drawImage(picture.canvas, Math.round(view.x * ratio) - 1, Math.round(view.y * ratio) - 1);
  ctx.restore();
}

export function drawEdges(ctx: CanvasRenderingContext2D, frame: Frame): void {
  const { scene, view, theme } = frame;
  const isFar = view.zoom < ZOOM_NAMES;
  if (isFar && frame.line === null && frame.critical === null) {
    drawFromFar(ctx, frame);
    return;
  }
  const width = Math.max(1.2, 0.8 / view.zoom);
  ctx.lineWidth = width;
  ctx.strokeStyle = theme.dim;
  const plain = new Path2D();
  const planned = new Path2D();
  const faint = new Path2D();
  const lit = new Path2D();
  const critical = new Path2D();
  const reach = reachOf(scene);
  const { x0, y0, x1, y1 } = frame.shown;
  for (let e = 0; e < scene.pairs.length / 2; e++) {
    const at = 4 * e;
    if ((reach[at] as number) > x1 || (reach[at + 2] as number) < x0) continue;
    if ((reach[at + 1] as number) > y1 || (reach[at + 3] as number) < y0) continue;
    const from = (scene.items[scene.pairs[2 * e] as number] as Item).id;
    const to = (scene.items[scene.pairs[2 * e + 1] as number] as Item).id;
    const step = frame.store.get(to);
    let path = frame.isPlan || (step !== undefined && lookOf(step) === "pending") ? planned : plain;
    if (frame.critical?.get(from) === to) path = critical;
    else if (isDimmed(frame, from) || isDimmed(frame, to)) path = faint;
    else if (frame.line !== null) path = lit;
    addEdge(path, scene, e, !isFar);
  }
  const stroke = (path: Path2D, alpha: number): void => {
    ctx.globalAlpha = alpha;
    ctx.stroke(path);
  };
  stroke(faint, DIMMED * 0.6);
  stroke(plain, isFar ? 0.2 : 0.55);
  if (!isFar) ctx.setLineDash([5, 5]);
  stroke(planned, isFar ? 0.14 : 0.4);
  ctx.setLineDash([]);
  ctx.strokeStyle = theme.accent;
  ctx.lineWidth = width * 1.3;
  stroke(lit, 0.9);
  ctx.strokeStyle = theme.look.retrying;
  ctx.lineWidth = width * 2.2;
  stroke(critical, 1);
  ctx.globalAlpha = 1;
}
