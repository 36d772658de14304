import { color } from "../../state";

/** The good share in green, the rest in red; nothing where nothing has ended. The figure is said beside it. */
export function SuccessBar({ share }: { readonly share: number | null }) {
  return (
    <span aria-hidden="true" className="flex h-1.5 w-14 shrink-0 gap-px overflow-hidden rounded-full bg-panel2">
      {share !== null && share > 0 && <span style={{ width: `${share * 100}%`, background: color("succeeded") }} />}
      {share !== null && share < 1 && <span className="min-w-[3px] flex-1" style={{ background: color("failed") }} />}
    </span>
  );
}
