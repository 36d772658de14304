import { type RefObject, useEffect, useState } from "react";

/** Whether a box has more than it shows. What scrolls must be reachable by key, and what does not must not be in the way. */
export function useOverflow(frame: RefObject<HTMLElement | null>): boolean {
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    const box = frame.current;
    if (box === null) return;
    const look = (): void => setOver(box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight);
    const observer = new ResizeObserver(look);
    observer.observe(box);
    for (const child of box.children) observer.observe(child);
    return () => observer.disconnect();
  }, [frame]);
  return isOver;
}
