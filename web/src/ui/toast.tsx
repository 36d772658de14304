import { X } from "lucide-react";
import { useSyncExternalStore } from "react";
import type { Look } from "../state";
import { IconButton } from "./IconButton";
import { StateIcon } from "./StateIcon";

export interface ToastOptions {
  readonly kind?: "good" | "bad" | "plain";
  readonly action?: { readonly label: string; readonly onPress: () => void };
}

interface Toast extends ToastOptions {
  readonly id: number;
  readonly text: string;
}

const SHOWN_MAX = 4;
const GOOD_MS = 5_000;
const BAD_MS = 12_000;
const LOOK: Readonly<Record<string, Look>> = { good: "succeeded", bad: "failed" };
const listeners = new Set<() => void>();
let toasts: readonly Toast[] = [];
let last = 0;

/** A line at the corner of the page that goes by itself. What must not be missed belongs on the page instead. */
export function toast(text: string, options: ToastOptions = {}): void {
  const id = ++last;
  change([...toasts, { id, text, ...options }].slice(-SHOWN_MAX));
  setTimeout(() => dismiss(id), options.kind === "bad" || options.action ? BAD_MS : GOOD_MS);
}

export function Toaster() {
  const shown = useSyncExternalStore(listen, () => toasts);
  return (
    <section
      aria-label="Notices"
      aria-live="polite"
      className="pointer-events-none fixed right-3 bottom-3 z-[60] flex w-80 max-w-[calc(100vw-24px)] flex-col gap-2"
    >
      {shown.map((one) => (
        <div
          key={one.id}
          className="pointer-events-auto flex items-center gap-2.5 rounded-lg border border-line2 bg-tip py-1.5 pr-1.5 pl-3 shadow-float"
        >
          {one.kind !== undefined && LOOK[one.kind] !== undefined && <StateIcon look={LOOK[one.kind] as Look} />}
          <span className="min-w-0 flex-1 break-words">{one.text}</span>
          {one.action !== undefined && (
            <button
              type="button"
              className="cursor-pointer px-1 font-medium text-accent hover:underline"
              onClick={() => {
                dismiss(one.id);
                one.action?.onPress();
              }}
            >
              {one.action.label}
            </button>
          )}
          <IconButton label="Dismiss" onClick={() => dismiss(one.id)}>
            <X size={13} aria-hidden="true" />
          </IconButton>
        </div>
      ))}
    </section>
  );
}

function dismiss(id: number): void {
  if (toasts.some((one) => one.id === id)) change(toasts.filter((one) => one.id !== id));
}

function change(next: readonly Toast[]): void {
  toasts = next;
  for (const hear of listeners) hear();
}

function listen(hear: () => void): () => void {
  listeners.add(hear);
  return () => listeners.delete(hear);
}
