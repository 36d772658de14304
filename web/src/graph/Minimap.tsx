import type { RefObject } from "react";
import { MINIMAP, miniView } from "./drawMinimap";
import type { Scene } from "./scene";
import type { Engine } from "./stage";

interface MinimapProps {
  readonly canvas: RefObject<HTMLCanvasElement | null>;
  readonly engine: Engine | null;
  readonly scene: Scene | null;
  readonly isShown: boolean;
}

/** The whole graph in a corner: press or drag to look elsewhere. Not for the keyboard, which has better ways. */
export function Minimap({ canvas, engine, scene, isShown }: MinimapProps) {
  const look = (event: React.PointerEvent): void => {
    if (scene === null || event.buttons === 0) return;
    const rect = event.currentTarget.getBoundingClientRect();
    const { x, y, zoom } = miniView(scene);
    engine?.centre((event.clientX - rect.left - x) / zoom, (event.clientY - rect.top - y) / zoom);
  };
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas without tabIndex has no focus
    <canvas
      ref={canvas}
      data-panel
      aria-hidden="true"
      onPointerDown={(event) => {
        event.currentTarget.setPointerCapture(event.pointerId);
        look(event);
      }}
      onPointerMove={look}
      className="absolute right-3 bottom-3 rounded-md border border-line bg-panel max-sm:hidden"
      style={{ ...MINIMAP, display: isShown ? undefined : "none" }}
    />
  );
}
