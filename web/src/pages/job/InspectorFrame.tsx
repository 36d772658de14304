import { type ReactNode, useState } from "react";

const KEY = "windlass.inspector";
const WIDE = { min: 280, max: 900, first: 380 };
const STEP = 24;

interface Kept {
  readonly width: number;
  readonly isOpen: boolean;
}

export interface Frame extends Kept {
  readonly toggle: () => void;
  readonly resize: (width: number) => void;
}

/** How wide, and whether it is folded: remembered, for it is about a screen and not about a step. */
export function useInspectorFrame(): Frame {
  const [kept, setKept] = useState(read);
  const keep = (next: Kept): void => {
    setKept(next);
    try {
      localStorage.setItem(KEY, JSON.stringify(next));
    } catch {
      // A browser that keeps nothing has it for as long as the step is shown.
    }
  };
  return {
    ...kept,
    toggle: () => keep({ ...kept, isOpen: !kept.isOpen }),
    resize: (width) => keep({ ...kept, width: clamp(width) }),
  };
}

interface InspectorFrameProps {
  readonly frame: Frame;
  readonly label: string;
  readonly children: ReactNode;
}

export function InspectorFrame({ frame, label, children }: InspectorFrameProps) {
  return (
    <aside
      aria-label={label}
      className="relative flex min-h-0 shrink-0 flex-col border-line border-l bg-panel max-md:fixed max-md:inset-x-0 max-md:bottom-0 max-md:z-30 max-md:h-[72dvh] max-md:w-auto! max-md:rounded-t-xl max-md:border-t max-md:border-l-0 max-md:shadow-float"
      style={{ width: `min(${frame.width}px, 60vw)` }}
    >
      <Edge frame={frame} />
      {children}
    </aside>
  );
}

/** Drag it, or use the arrows. */
function Edge({ frame }: { readonly frame: Frame }) {
  const drag = (event: React.PointerEvent<HTMLDivElement>): void => {
    const side = event.currentTarget.parentElement;
    if (event.buttons === 0 || side === null) return;
    frame.resize(side.getBoundingClientRect().right - event.clientX);
  };
  const press = (event: React.KeyboardEvent): void => {
    const by = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    frame.resize(frame.width + by);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved
    <div
      role="separator"
      aria-orientation="vertical"
      aria-label="Width of the inspector"
      aria-valuenow={frame.width}
      aria-valuemin={WIDE.min}
      aria-valuemax={WIDE.max}
      tabIndex={0}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={drag}
      onKeyDown={press}
      className="absolute inset-y-0 -left-1 z-10 w-2 cursor-col-resize touch-none hover:bg-accent/30 max-md:hidden"
    />
  );
}

function read(): Kept {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "null");
    const { width, isOpen } = kept as Partial<Kept>;
    return { width: clamp(Number(width) || WIDE.first), isOpen: isOpen !== false };
  } catch {
    return { width: WIDE.first, isOpen: true };
  }
}

function clamp(width: number): number {
  return Math.round(Math.min(WIDE.max, Math.max(WIDE.min, width)));
}
