import { color } from "../state";

const BLOCKS_MAX = 48;

/** How many slots are taken: a block for each, or for several if there are very many. A taken slot is filled. */
export function Places(props: { readonly taken: number; readonly all: number; readonly word: string }) {
  const { taken, all, word } = props;
  const blocks = Math.min(all, BLOCKS_MAX);
  const filled = all === 0 ? 0 : Math.ceil((taken / all) * blocks);
  return (
    <div className="flex items-center gap-2 text-[12px]">
      <span aria-hidden="true" className="flex h-2 flex-1 gap-[2px]">
        {Array.from({ length: blocks }, (_, i) => i).map((place) => (
          <span
            key={place}
            className="h-full flex-1 rounded-[2px]"
            style={{ background: place < filled ? color("running") : "var(--panel2)" }}
          />
        ))}
      </span>
      <span className="whitespace-nowrap text-dim tabular-nums">
        {taken} of {all} {word}
      </span>
    </div>
  );
}
