import { useEffect, useRef } from "react";

const DELAY_MS = 350;
const GAP = 6;

/**
 * One tip for the whole page. Rows by the thousand say theirs with an attribute and cost nothing until one points at
 * them; the tip is in the top layer, so that it is seen over dialogs too.
 */
export function TipLayer() {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const tip = box.current;
    if (tip === null) return;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let shownFor: Element | null = null;

    const hide = (): void => {
      clearTimeout(timer);
      if (shownFor?.getAttribute("aria-describedby") === "tip") shownFor.removeAttribute("aria-describedby");
      shownFor = null;
      if (tip.matches(":popover-open")) tip.hidePopover();
    };
    const show = (owner: Element): void => {
      const text = owner.getAttribute("data-tip");
      if (!text || !owner.isConnected) return;
      tip.textContent = text;
      tip.showPopover();
      place(tip, owner);
      shownFor = owner;
      if (text !== owner.getAttribute("aria-label") && !owner.hasAttribute("aria-describedby"))
        owner.setAttribute("aria-describedby", "tip");
    };
    const over = (event: Event): void => {
      const target = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
      if (target === shownFor && target !== null) return;
      hide();
      if (target === null) return;
      const isKey = event.type === "focusin";
      if (isKey && !target.matches(":focus-visible, :has(:focus-visible)")) return;
      timer = setTimeout(() => show(target), isKey ? 0 : DELAY_MS);
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key === "Escape") hide();
    };

    const heard: [string, (event: never) => void][] = [
      ["pointerover", over],
      ["focusin", over],
      ["focusout", hide],
      ["pointerdown", hide],
      ["keydown", key],
    ];
    for (const [type, hear] of heard) document.addEventListener(type, hear as EventListener);
    document.addEventListener("scroll", hide, { capture: true, passive: true });
    return () => {
      hide();
      for (const [type, hear] of heard) document.removeEventListener(type, hear as EventListener);
      document.removeEventListener("scroll", hide, { capture: true });
    };
  }, []);
  return (
    <div
      ref={box}
      id="tip"
      role="tooltip"
      popover="manual"
      className="pointer-events-none m-0 max-w-80 whitespace-pre-line rounded-md border border-line2 bg-tip px-2 py-1 text-[12px] text-fg shadow-float"
    />
  );
}

/** Below its owner, or above where there is no room, and always whole. */
function place(tip: HTMLElement, owner: Element): void {
  const at = owner.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(GAP, Math.min(at.left + at.width / 2 - width / 2, innerWidth - width - GAP));
  const below = at.bottom + GAP;
  const top = below + height + GAP > innerHeight ? Math.max(GAP, at.top - height - GAP) : below;
  tip.style.inset = `${top}px auto auto ${left}px`;
}
