import { useCallback, useEffect, useId, useMemo, useRef, useState } from "react";
import { Card } from "./Card";
import { Find } from "./Find";
import { type Filter, useKept } from "./filter";
import { fold, stepCount } from "./fold";
import { COMMAND_OF, type Command, isArrow, neighbour } from "./keys";
import { Minimap } from "./Minimap";
import { mermaidOf } from "./mermaid";
import { listenToPointer } from "./pointer";
import { relationsOf } from "./relations";
import { sceneOf } from "./scene";
import type { GraphStore } from "./store";
import { Toolbar } from "./Toolbar";
import { durationText } from "./text";
import type { Direction, StepNo, Structure } from "./types";
import { useEngine } from "./useEngine";
import { useLayout } from "./useLayout";
import { useCritical, useLine } from "./useMarks";
import { useOpen } from "./useOpen";

const ZOOM_STEP = 1.25;

export interface GraphViewProps {
  /**
   * Steps and edges. Make a new object only when there are new ones: it is laid out again, with the step that is looked
   * at held in place. States, durations and counts go through `store`.
   */
  readonly structure: Structure;
  /** `createGraphStore(structure.nodes)`, once per job; then `store.patch(…)` with the patches of the stream. */
  readonly store: GraphStore;
  /** The step that the inspector shows; its ancestors and dependants are lit and the rest is dimmed. */
  readonly selected: StepNo | null;
  readonly onSelect: (id: StepNo | null) => void;
  /**
   * This fan-out is open. Load what is not known of its children; children that are not in `structure` come with a new one
   * that has them, with `parent` set. Keep the function the same from render to render.
   */
  readonly onOpenFan: (id: StepNo) => void;
  /** A recipe that is not running: every step is drawn as a plan, without a state. */
  readonly planned?: boolean;
}

/** The graph of a job: a canvas for all of it, and real buttons for the steps in view once they can be read. */
export function GraphView({ structure, store, selected, onSelect, onOpenFan, planned = false }: GraphViewProps) {
  const { refs, engine, size, cards, focus } = useEngine(store);
  const { open, toggle: flipOpen, show } = useOpen(structure, onOpenFan);
  const [filter, setFilter] = useState<Filter>("all");
  const [direction, setDirection] = useState<Direction | undefined>(undefined);
  const [isFollowing, setFollowing] = useState(false);
  const [isFinding, setFinding] = useState(false);
  const [hasMinimap, setMinimap] = useState(true);
  const [hasCritical, setCritical] = useState(false);
  const descriptionId = useId();

  useEffect(() => store.add(structure.nodes), [store, structure]);
  const kept = useKept(structure, store, filter);
  const folded = useMemo(() => fold(structure, open, kept && ((id) => kept.has(id))), [structure, open, kept]);
  const laidOut = useLayout(folded, size, direction);
  const scene = useMemo(() => laidOut && sceneOf(laidOut.folded, laidOut.layout), [laidOut]);
  const line = useLine(structure, selected);
  const criticalPath = useCritical(structure, store, hasCritical);
  const critical = useMemo(() => {
    const ids = criticalPath?.ids;
    return ids === undefined ? null : new Map(ids.map((id, i) => [id, ids[i + 1] ?? null]));
  }, [criticalPath]);

  useEffect(() => {
    engine?.mark({ line, critical, selected, isPlan: planned, isFollowing });
  }, [engine, line, critical, selected, planned, isFollowing]);
  useEffect(() => {
    if (scene !== null) engine?.show(scene);
  }, [engine, scene]);
  /** A step that was searched for is to be read, once it is there: its fan-out may have to be opened first. */
  const sought = useRef<StepNo | null>(null);
  // A selected step comes into view, also when a table selected it. A folded child is shown by its fan-out.
  useEffect(() => {
    if (selected === null || scene === null) return;
    const parent = relationsOf(structure).nodes.get(selected)?.parent;
    const isThere = scene.byId.has(selected) || parent === undefined;
    engine?.reveal(isThere ? selected : parent, isThere && sought.current === selected);
    if (isThere) sought.current = null;
  }, [engine, scene, selected, structure]);

  const toggle = (id: StepNo): void => {
    engine?.hold(id);
    flipOpen(id);
  };
  const run = (command: Command): void => {
    const flip = (one: Filter): void => setFilter((now) => (now === one ? "all" : one));
    if (command === "fit") {
      setFollowing(false);
      engine?.fit();
    } else if (command === "follow") setFollowing((is) => !is);
    else if (command === "failed" || command === "unfinished") flip(command);
    else if (command === "find") setFinding((is) => !is);
    else if (command === "direction") setDirection(scene?.direction === "right" ? "down" : "right");
    else if (command === "minimap") setMinimap((is) => !is);
    else if (command === "critical") setCritical((is) => !is);
    else engine?.zoom(command === "larger" ? ZOOM_STEP : 1 / ZOOM_STEP);
  };
  const go = (id: StepNo): void => {
    const parent = relationsOf(structure).nodes.get(id)?.parent;
    if (parent !== undefined) show(parent);
    sought.current = id;
    onSelect(id);
    if (id === selected) engine?.reveal(id, true);
  };
  const onKeyDown = (event: React.KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
    const command = COMMAND_OF[event.key];
    if (command !== undefined) run(command);
    else if (isArrow(event.key) && scene !== null) {
      const from = Number((event.target as HTMLElement).dataset.step ?? selected ?? Number.NaN);
      const to = scene.byId.has(from) ? neighbour(scene, structure, from, event.key) : scene.items[0]?.id;
      if (to !== undefined) {
        onSelect(to);
        focus(to);
      }
    } else if (event.key === "o" && selected !== null)
      toggle(relationsOf(structure).nodes.get(selected)?.parent ?? selected);
    else if (event.key === "Escape" && selected !== null) onSelect(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  const isFan = useCallback((id: StepNo) => store.get(id)?.fan !== undefined, [store]);
  // Read when a click comes and not when it is listened for, or every selection would listen anew.
  const latest = useRef({ onSelect, toggle });
  latest.current = { onSelect, toggle };
  useEffect(() => {
    if (engine === null || refs.box.current === null) return;
    return listenToPointer(refs.box.current, engine, {
      onClick: (item) => latest.current.onSelect(item?.id ?? null),
      onDoubleClick: (item) => isFan(item.id) && latest.current.toggle(item.id),
      onTake: () => setFollowing(false),
    });
  }, [engine, refs.box, isFan]);

  const stop = cards.items.some((item) => item.id === selected) ? selected : cards.items[0]?.id;
  const select = useCallback((id: StepNo) => latest.current.onSelect(id), []);
  const flip = useCallback(
    (id: StepNo) => {
      latest.current.toggle(id);
      // The button that was pressed may be gone with the next layout, and the focus must not go with it.
      focus(id);
    },
    [focus],
  );
  return (
    <div
      ref={refs.box}
      role="application"
      aria-label={planned ? "Graph of the recipe" : "Graph of the job"}
      aria-describedby={descriptionId}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: an application has the keys to itself
      tabIndex={0}
      onKeyDown={onKeyDown}
      // The browser scrolls to what gets the focus; here the camera does.
      onScroll={(event) => event.currentTarget.scrollTo(0, 0)}
      className="relative h-full min-h-0 w-full touch-none select-none overflow-hidden bg-bg"
    >
      <p id={descriptionId} className="sr-only">
        {stepCount(structure)} steps. Arrow keys move along the graph, Enter selects, O opens or folds a fan-out, F
        fits, L follows what runs, E shows only failed steps, H hides finished ones, slash finds, T turns, C marks the
        critical path. The Steps tab has the same as a table.
      </p>
      {/* biome-ignore lint/a11y/noAriaHiddenOnFocusable: a canvas without tabIndex has no focus */}
      <canvas ref={refs.canvas} aria-hidden="true" className="absolute inset-0 h-full w-full" />
      <div ref={refs.layer} className="absolute top-0 left-0 h-0 w-0 origin-top-left">
        {cards.items.map((item) => (
          <Card
            key={item.id}
            item={item}
            store={store}
            isPlan={planned}
            isGhost={cards.areGhosts}
            isSelected={item.id === selected}
            isDimmed={line !== null && !line.has(item.id)}
            isCritical={critical?.has(item.id) === true}
            isStop={item.id === stop}
            onSelect={select}
            onToggle={flip}
          />
        ))}
      </div>
      <Toolbar
        toggles={{ filter, isFollowing, isFinding, hasMinimap, hasCritical }}
        isPlan={planned}
        onCommand={run}
        onCopy={() => navigator.clipboard.writeText(mermaidOf(structure, store, scene?.direction ?? "down"))}
      />
      {isFinding && <Find structure={structure} onGo={go} onClose={() => closeFind(setFinding, refs.box.current)} />}
      <Minimap canvas={refs.minimap} engine={engine} scene={scene} isShown={hasMinimap} />
      <Notice isEmpty={folded.vertices.length === 0} filter={filter} criticalMs={criticalPath?.ms} />
    </div>
  );
}

function closeFind(setFinding: (is: boolean) => void, box: HTMLElement | null): void {
  setFinding(false);
  box?.focus({ preventScroll: true });
}

interface NoticeProps {
  readonly isEmpty: boolean;
  readonly filter: Filter;
  readonly criticalMs: number | undefined;
}

function Notice({ isEmpty, filter, criticalMs }: NoticeProps) {
  const why = { all: "No steps yet", failed: "Nothing has failed", unfinished: "Everything is finished" }[filter];
  return (
    <>
      {isEmpty && (
        <p role="status" className="absolute inset-0 grid place-items-center text-dim">
          {why}
        </p>
      )}
      {criticalMs !== undefined && (
        <p className="absolute bottom-3 left-3 rounded border border-line bg-panel px-2 py-0.5 text-[11px] text-dim">
          critical path {durationText(criticalMs)}
        </p>
      )}
    </>
  );
}
