import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { openAtFirst } from "./fold";
import { relationsOf } from "./relations";
import type { StepNo, Structure } from "./types";

/** Which fan-outs are open: by default, or by a click since. Asks once for their children. */
export function useOpen(
  structure: Structure,
  onOpenFan: (id: StepNo) => void,
): { readonly open: ReadonlySet<StepNo>; readonly toggle: (id: StepNo) => void; readonly show: (id: StepNo) => void } {
  const [said, setSaid] = useState<ReadonlyMap<StepNo, boolean>>(new Map());
  const open = useMemo(() => {
    const all = new Set(openAtFirst(structure));
    for (const [id, isOpen] of said) {
      if (isOpen) all.add(id);
      else all.delete(id);
    }
    return all;
  }, [structure, said]);
  const asked = useRef(new Map<StepNo, number>());
  useEffect(() => {
    const { nodes } = relationsOf(structure);
    for (const id of open) {
      const total = nodes.get(id)?.fan?.total ?? 0;
      if (total === 0 || asked.current.get(id) === total) continue;
      asked.current.set(id, total);
      onOpenFan(id);
    }
  }, [structure, open, onOpenFan]);
  const say = useCallback((id: StepNo, isOpen: boolean) => setSaid((before) => new Map(before).set(id, isOpen)), []);
  const toggle = useCallback((id: StepNo) => say(id, !open.has(id)), [say, open]);
  const show = useCallback((id: StepNo) => say(id, true), [say]);
  return { open, toggle, show };
}
