import { useEffect, useRef } from "react";
import { absolute } from "../../ui/time";
import { usePreference } from "../../use/usePreference";
import { clock } from "./clock";
import type { LogLine } from "./types";

const TONE: Readonly<Record<string, string>> = {
  debug: "text-dim",
  warning: "text-warn",
  error: "text-danger",
  critical: "text-danger",
};

/** The last lines that the step has written. Stays at the end, unless it is scrolled up. */
export function Logs({ lines }: { readonly lines: readonly LogLine[] }) {
  const [zone] = usePreference("zone");
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  // biome-ignore lint/correctness/useExhaustiveDependencies: with every new line
  useEffect(() => {
    if (isAtEnd.current && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  return (
    <div
      ref={box}
      role="log"
      aria-label="Log"
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key
      tabIndex={0}
      onScroll={({ currentTarget: at }) => {
        isAtEnd.current = at.scrollHeight - at.scrollTop - at.clientHeight < 8;
      }}
      className="max-h-64 overflow-auto rounded-lg border border-line bg-field px-2.5 py-2 font-mono text-[11px] leading-[1.6]"
    >
      {lines.map((line, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines have no name but their place
        <p key={i} className={`whitespace-pre-wrap break-words ${TONE[line.level.toLowerCase()] ?? ""}`}>
          <time className="mr-2 text-dim" data-tip={absolute(Date.parse(line.at), zone)}>
            {clock(Date.parse(line.at), zone).slice(0, 8)}
          </time>
          {TONE[line.level.toLowerCase()] !== undefined && <span className="mr-1.5">{line.level.toLowerCase()}</span>}
          {line.text}
        </p>
      ))}
    </div>
  );
}
