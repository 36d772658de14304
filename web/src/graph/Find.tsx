import { useMemo, useState } from "react";
import type { StepNo, Structure } from "./types";

const FOUND_MAX = 8;

interface FindProps {
  readonly structure: Structure;
  readonly onGo: (id: StepNo) => void;
  readonly onClose: () => void;
}

/** Steps whose name or label has all the words; names that begin with them come first. */
export function findSteps(structure: Structure, text: string): StepNo[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return [];
  const first: StepNo[] = [];
  const rest: StepNo[] = [];
  for (const node of structure.nodes) {
    const said = node.name === node.label ? node.name.toLowerCase() : `${node.name} ${node.label}`.toLowerCase();
    if (!words.every((word) => said.includes(word))) continue;
    (said.startsWith(words[0] as string) ? first : rest).push(node.id);
  }
  return [...first, ...rest];
}

export function Find({ structure, onGo, onClose }: FindProps) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const found = useMemo(() => findSteps(structure, text), [structure, text]);
  const go = (index: number): void => {
    if (found.length === 0) return;
    const next = (index + found.length) % found.length;
    setAt(next);
    onGo(found[next] as StepNo);
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") onClose();
    else if (event.key === "Enter") go(event.shiftKey ? at - 1 : at + 1);
  };
  const names = useMemo(() => new Map(structure.nodes.map((node) => [node.id, node])), [structure]);
  return (
    <div data-panel className="absolute top-12 left-2 w-64 rounded-lg border border-line bg-panel p-1.5 shadow-lg">
      <input
        // biome-ignore lint/a11y/noAutofocus: it was asked for by a key just now
        autoFocus
        aria-label="Find a step"
        placeholder="Find a step"
        value={text}
        onKeyDown={onKeyDown}
        onChange={(event) => {
          setText(event.target.value);
          setAt(-1);
        }}
        className="w-full rounded-md border border-line bg-bg px-2 py-1 text-[13px]"
      />
      <p className="px-1 pt-1 text-[11px] text-dim" role="status">
        {text.trim() === "" ? "Enter: next · Shift Enter: back · Esc: close" : `${found.length} found`}
      </p>
      <ul>
        {found.slice(0, FOUND_MAX).map((id, i) => (
          <li key={id}>
            <button
              type="button"
              onClick={() => go(i)}
              className={`w-full cursor-pointer truncate rounded px-1.5 py-1 text-left text-[12px] hover:bg-panel2 ${i === at ? "bg-panel2" : ""}`}
            >
              {names.get(id)?.label}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
