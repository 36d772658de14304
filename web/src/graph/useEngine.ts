import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";
import type { Size } from "./camera";
import { createEngine } from "./engine";
import type { Cards, Engine } from "./stage";
import type { GraphStore } from "./store";
import type { StepNo } from "./types";

const SIZE: Size = { width: 1_000, height: 700 };

export interface StageRefs {
  readonly box: RefObject<HTMLDivElement | null>;
  readonly canvas: RefObject<HTMLCanvasElement | null>;
  readonly layer: RefObject<HTMLDivElement | null>;
  readonly minimap: RefObject<HTMLCanvasElement | null>;
}

export interface EngineHold {
  readonly refs: StageRefs;
  readonly engine: Engine | null;
  readonly size: Size | null;
  /** The steps that are to be buttons now. */
  readonly cards: Cards;
  /** Give a step the focus, as soon as it is a button. */
  readonly focus: (id: StepNo) => void;
}

/** The engine for as long as the graph is on the page. */
export function useEngine(store: GraphStore): EngineHold {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const layer = useRef<HTMLDivElement>(null);
  const minimap = useRef<HTMLCanvasElement>(null);
  const [engine, setEngine] = useState<Engine | null>(null);
  const [size, setSize] = useState<Size | null>(null);
  const [cards, setCards] = useState<Cards>({ items: [], areGhosts: false });
  const wanted = useRef<StepNo | null>(null);

  useEffect(() => {
    if (box.current === null || canvas.current === null || layer.current === null || minimap.current === null) return;
    // In a tab that is not shown yet there is no size to go by.
    setSize({ width: box.current.clientWidth || SIZE.width, height: box.current.clientHeight || SIZE.height });
    const stage = { canvas: canvas.current, layer: layer.current, minimap: minimap.current };
    const made = createEngine(stage, store, setCards);
    setEngine(made);
    return () => made.stop();
  }, [store]);

  const tryFocus = useCallback(() => {
    const button = layer.current?.querySelector<HTMLElement>(`[data-step="${wanted.current}"]`);
    if (button == null) return;
    wanted.current = null;
    button.focus({ preventScroll: true });
  }, []);
  useLayoutEffect(() => {
    engine?.cover(new Set(cards.areGhosts ? [] : cards.items.map((item) => item.id)));
    if (wanted.current !== null) tryFocus();
  }, [engine, cards, tryFocus]);
  const focus = useCallback(
    (id: StepNo) => {
      wanted.current = id;
      tryFocus();
    },
    [tryFocus],
  );
  return { refs: { box, canvas, layer, minimap }, engine, size, cards, focus };
}
