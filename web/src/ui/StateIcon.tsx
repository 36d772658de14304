import { ICON } from "../graph/icons";
import { color, type Look } from "../state";

/** The drawing of a state, in its colour: the same on cards, on the canvas and in tables. */
export function StateIcon({ look, size = 13 }: { readonly look: Look; readonly size?: number }) {
  return (
    <svg
      aria-hidden="true"
      className={`shrink-0 ${look === "running" ? "spin" : ""}`}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      style={{ color: color(look) }}
    >
      <path d={ICON[look]} stroke="currentColor" strokeWidth={1.9} strokeLinecap="round" strokeLinejoin="round" />
    </svg>
  );
}
