import { Copy } from "./Copy";

interface JsonProps {
  readonly value: unknown;
  readonly label?: string;
}

/** More than this is not read on a page, and would hold it up. */
const SHOWN_MAX = 200_000;
const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function Json({ value, label = "JSON" }: JsonProps) {
  const text = JSON.stringify(value, null, 2) ?? "undefined";
  const isLong = text.length > SHOWN_MAX;
  return (
    <figure aria-label={label} className="group relative m-0 min-w-0 rounded-lg border border-line bg-field">
      <div className="absolute top-1 right-1">
        <Copy text={text} label={`Copy ${label}`} />
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by key */}
      <pre tabIndex={0} className="max-h-[60vh] overflow-auto p-3 pr-9 font-mono text-[12px] leading-[1.55]">
        {isLong ? text.slice(0, SHOWN_MAX) : paint(text)}
      </pre>
      {isLong && (
        <figcaption className="border-line border-t px-3 py-1.5 text-[12px] text-dim">
          The first {SHOWN_MAX / 1_000} kB of {Math.round(text.length / 1_000)} kB; the button copies all of it.
        </figcaption>
      )}
    </figure>
  );
}

/** Keys, texts, numbers and words apart from each other, as elements: never as markup. */
function paint(text: string): React.ReactNode[] {
  const parts: React.ReactNode[] = [];
  let from = 0;
  for (const found of text.matchAll(TOKEN)) {
    if (found.index > from) parts.push(text.slice(from, found.index));
    from = found.index + found[0].length;
    const tone = found[2] ? "text-fg" : found[1] ? "text-good" : found[3] ? "text-code-word" : "text-code-number";
    parts.push(
      <span key={found.index} className={tone}>
        {found[0]}
      </span>,
    );
  }
  parts.push(text.slice(from));
  return parts;
}
