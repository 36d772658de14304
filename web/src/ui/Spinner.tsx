import { ICON } from "../graph/icons";

/** The only animation of the console; it stands still if the system asks for reduced motion. */
export function Spinner({ size = 13 }: { readonly size?: number }) {
  return (
    <svg aria-hidden="true" className="spin shrink-0" width={size} height={size} viewBox="0 0 16 16" fill="none">
      <path d={ICON.running} stroke="currentColor" strokeWidth={1.9} strokeLinecap="round" />
    </svg>
  );
}
