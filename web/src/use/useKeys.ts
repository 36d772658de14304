import { useEffect, useRef } from "react";
import { addLayer, type Bindings } from "./keys";

/**
 * Keys of a page or a part of it, while it is there: `useKeys({ j: next, "shift+x": range, "g j": toJobs })`. None acts
 * inside an input, nor while a dialog or a menu is open; the part that was shown last wins.
 */
export function useKeys(bindings: Bindings): void {
  const latest = useRef(bindings);
  useEffect(() => {
    latest.current = bindings;
  });
  useEffect(() => addLayer(() => latest.current), []);
}
