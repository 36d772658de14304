import { ICON } from "../graph/icons";

/** The only thing that moves; it stands still for those who asked their system for less motion. */
export function Spinner({ size = 13 }: { readonly size?: number }) {
  return (
    <svg aria-hidden="true" className="spin shrink-0" width={size} height={size} viewBox="0 0 16 16" fill="none">
      <path d={ICON.running} stroke="currentColor" strokeWidth={1.9} strokeLinecap="round" />
    </svg>
  );
}
