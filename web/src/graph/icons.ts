import type { Look } from "../state";

const RING = "M2.5 8a5.5 5.5 0 1 0 11 0a5.5 5.5 0 1 0 -11 0";

/** One drawing per look in a square of 16, as a stroke: the canvas and the cards show the same. */
export const ICON: Readonly<Record<Look, string>> = {
  pending: dashedRing(8),
  queued: `${RING}M8 4.8V8l2.2 1.5`,
  ready: `${RING}M6.8 8a1.2 1.2 0 1 0 2.4 0a1.2 1.2 0 1 0 -2.4 0`,
  running: "M8 2.5a5.5 5.5 0 1 1 -5.5 5.5",
  retrying: "M12.9 5.6a5.5 5.5 0 1 0 .6 2.4M13.2 2.6v3.2h-3.2",
  waiting: "M5.8 4v8M10.2 4v8",
  succeeded: "M3 8.6l3.2 3.2L13 4.6",
  failed: "M4 4l8 8M12 4l-8 8",
  cancelled: `${RING}M4.2 4.2l7.6 7.6`,
  skipped: "M3.5 8h9",
};

function dashedRing(dashes: number): string {
  const point = (turn: number): string =>
    `${(8 + 5.5 * Math.cos(2 * Math.PI * turn)).toFixed(2)} ${(8 + 5.5 * Math.sin(2 * Math.PI * turn)).toFixed(2)}`;
  let path = "";
  for (let i = 0; i < dashes; i++) path += `M${point(i / dashes)}A5.5 5.5 0 0 1 ${point((i + 0.55) / dashes)}`;
  return path;
}
