import { ArrowUp } from "lucide-react";
import { FRESH_MAX } from "./listStore";

interface NewsProps {
  readonly fresh: number;
  readonly gone: number;
  readonly onRefresh: () => void;
}

/** Jobs that came and left while the list was held: shown on request, never by itself. */
export function News({ fresh, gone, onRefresh }: NewsProps) {
  if (fresh === 0 && gone === 0) return null;
  const text = [
    fresh > 0 ? `${fresh.toLocaleString("en")}${fresh >= FRESH_MAX ? "+" : ""} new` : "",
    gone > 0 ? `${gone.toLocaleString("en")} no longer match` : "",
  ].filter((part) => part !== "");
  return (
    <div className="pointer-events-none absolute inset-x-0 top-9 z-20 flex justify-center">
      <button
        type="button"
        data-news
        onClick={onRefresh}
        className={`pointer-events-auto flex h-7 cursor-pointer items-center gap-1.5 rounded-full border px-3 font-medium text-[12px] shadow-float ${fresh > 0 ? "border-transparent bg-accent text-on-accent hover:bg-accent-hover" : "border-line2 bg-tip text-fg hover:bg-panel2"}`}
      >
        {fresh > 0 && <ArrowUp size={13} aria-hidden="true" />}
        <span className="tabular-nums">{text.join(" · ")}</span>
        {fresh === 0 && <span className="text-dim">Refresh</span>}
      </button>
    </div>
  );
}
