// biome-ignore-all lint/a11y/useSemanticElements: rows stand where their number says, which no <tr> can
// biome-ignore-all lint/a11y/useFocusableInteractive: what has the focus in a row is its link
import { useVirtualizer } from "@tanstack/react-virtual";
import { type MouseEvent, useEffect, useImperativeHandle, useRef } from "react";
import { COLUMNS, MARK_CELL, MENU_CELL, STATE_CELL } from "./columns";
import type { JobList } from "./jobList";
import { Row } from "./Row";

export interface ListHandle {
  /** Bring a row into sight and give it the focus. */
  focusRow(index: number): void;
  toTop(): void;
  menuButton(id: string): HTMLElement | null;
}

interface ListProps {
  readonly list: JobList;
  readonly ids: readonly string[];
  readonly hasMore: boolean;
  readonly isReading: boolean;
  readonly rowPx: number;
  readonly isCard: boolean;
  readonly chosen: ReadonlySet<string>;
  readonly at: string | null;
  readonly onOpen: (id: string) => void;
  readonly onChoose: (id: string, isRange: boolean) => void;
  readonly onMenu: (id: string, button: HTMLElement) => void;
  readonly onFocusRow: (id: string | null) => void;
  readonly onPoint: (isPointing: boolean) => void;
  readonly onScrolled: (isAway: boolean) => void;
  readonly handle: React.Ref<ListHandle>;
}

/** So many rows before the end the next page is asked for. */
const AHEAD = 20;

/** The rows in sight, drawn where they belong in a list of any length. */
export function List(props: ListProps) {
  const { list, ids, rowPx, isCard } = props;
  const frame = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: ids.length,
    getScrollElement: () => frame.current,
    estimateSize: () => rowPx,
    getItemKey: (index) => ids[index] ?? index,
    overscan: 6,
    initialOffset: list.scrolledTo,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: another density, other heights
  useEffect(() => rows.measure(), [rowPx]);
  useImperativeHandle(props.handle, () => ({
    focusRow: (index) => {
      rows.scrollToIndex(index);
      const id = ids[index];
      if (id !== undefined) whenDrawn(frame.current, id, (row) => row.querySelector<HTMLElement>("a")?.focus());
    },
    toTop: () => frame.current?.scrollTo({ top: 0 }),
    menuButton: (id) => rowOf(frame.current, id)?.querySelector<HTMLElement>("[data-act=menu]") ?? null,
  }));

  const drawn = rows.getVirtualItems();
  const lastDrawn = drawn.at(-1)?.index ?? 0;
  useEffect(() => {
    if (props.hasMore && lastDrawn > ids.length - AHEAD) list.more();
  }, [props.hasMore, lastDrawn, ids.length, list]);

  const press = (event: MouseEvent<HTMLElement>): void => {
    const target = event.target as HTMLElement;
    const id = target.closest<HTMLElement>("[data-job]")?.dataset.job;
    if (id === undefined) return;
    const act = target.closest<HTMLElement>("[data-act]");
    if (act?.dataset.act === "choose" || event.shiftKey) props.onChoose(id, event.shiftKey);
    else if (act?.dataset.act === "menu") props.onMenu(id, act);
    // With a key held a link is the browser's, and marking text is not pressing.
    else if (!event.metaKey && !event.ctrlKey && isNothingMarked()) {
      event.preventDefault();
      props.onOpen(target.closest<HTMLElement>("[data-open]")?.dataset.open ?? id);
    }
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: presses on rows are heard here once; keys reach each row's link
    // biome-ignore lint/a11y/useKeyWithClickEvents: see above
    <div
      ref={frame}
      className="@container relative min-h-0 flex-1 overflow-auto bg-bg [&[data-moving]_.spin]:animate-none! [overflow-anchor:none]"
      onClick={press}
      onPointerEnter={() => props.onPoint(true)}
      onPointerLeave={() => props.onPoint(false)}
      onFocus={(event) => props.onFocusRow(event.target.closest<HTMLElement>("[data-job]")?.dataset.job ?? null)}
      onScroll={(event) => {
        calm(frame.current);
        list.scrolledTo = event.currentTarget.scrollTop;
        props.onScrolled(list.scrolledTo > 4);
      }}
    >
      <div
        role="table"
        aria-label="Jobs"
        aria-rowcount={props.hasMore ? -1 : ids.length + 1}
        aria-busy={props.isReading}
      >
        <Heads isHidden={isCard} />
        <div role="rowgroup" className="relative" style={{ height: rows.getTotalSize() }}>
          {drawn.map(({ index, start, key }) => {
            const id = ids[index];
            if (id === undefined) return null;
            return (
              <Row
                key={key}
                id={id}
                store={list.store}
                index={index}
                top={start}
                height={rowPx}
                isCard={isCard}
                isChosen={props.chosen.has(id)}
                isAt={props.at === id}
              />
            );
          })}
        </div>
      </div>
      {props.isReading && (
        <p role="status" className="px-4 py-2 text-[12px] text-dim">
          Loading more…
        </p>
      )}
    </div>
  );
}

function Heads({ isHidden }: { readonly isHidden: boolean }) {
  return (
    <div
      role="rowgroup"
      className={isHidden ? "sr-only" : "sticky top-0 z-10 border-line border-b bg-bg font-medium text-[11px] text-dim"}
    >
      <div role="row" aria-rowindex={1} className="flex h-8 items-center gap-3 px-4">
        <div role="columnheader" className={MARK_CELL}>
          <span className="sr-only">Chosen</span>
        </div>
        <div role="columnheader" className={STATE_CELL}>
          State
        </div>
        {(["id", "recipe", "caller", "progress", "duration", "age", "retry", "note"] as const).map((name) => (
          <div key={name} role="columnheader" className={COLUMNS[name].cell}>
            {COLUMNS[name].head}
          </div>
        ))}
        <div role="columnheader" className={MENU_CELL}>
          <span className="sr-only">Acts</span>
        </div>
      </div>
    </div>
  );
}

const still = new WeakMap<HTMLElement, ReturnType<typeof setTimeout>>();

/** Spinners stand while the list moves: each is a layer of its own, and together they cost more than the rows. */
function calm(frame: HTMLElement | null): void {
  if (frame === null) return;
  frame.dataset.moving = "";
  clearTimeout(still.get(frame));
  still.set(frame, setTimeout(() => delete frame.dataset.moving, 150)); // biome-ignore format: one thought
}

function rowOf(frame: HTMLElement | null, id: string): HTMLElement | null {
  return frame?.querySelector<HTMLElement>(`[data-job="${CSS.escape(id)}"]`) ?? null;
}

/** A row that was out of sight is drawn in one of the next frames. */
function whenDrawn(frame: HTMLElement | null, id: string, run: (row: HTMLElement) => void, tries = 10): void {
  const row = rowOf(frame, id);
  if (row !== null) run(row);
  else if (tries > 0) requestAnimationFrame(() => whenDrawn(frame, id, run, tries - 1));
}

function isNothingMarked(): boolean {
  return getSelection()?.isCollapsed ?? true;
}
