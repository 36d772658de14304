/** The children of each fan-out by how they look, kept up as they change, so that a bar never waits for a count. */
import { fanOf } from "../../graph/document";
import type { Fan, StepNo } from "../../graph/types";
import type { Look } from "../../state";
import type { FanDocument } from "./types";

export interface Tally {
  /** A child looks so now. */
  note(parent: StepNo, child: StepNo, look: Look): void;
  /** What the server counts. */
  told(parent: StepNo, fan: FanDocument): void;
  /** The bar of a fan-out; undefined for a step that is none. */
  fan(parent: StepNo): Fan | undefined;
  /** Whether the server has made children that this page does not know. */
  isShort(parent: StepNo): boolean;
  parentOf(child: StepNo): StepNo | undefined;
}

export function createTally(): Tally {
  const looks = new Map<StepNo, Look>();
  const parents = new Map<StepNo, StepNo>();
  const counts = new Map<StepNo, { known: number; by: Partial<Record<Look, number>> }>();
  const documents = new Map<StepNo, FanDocument>();

  const isShort = (parent: StepNo): boolean => (documents.get(parent)?.made ?? 0) > (counts.get(parent)?.known ?? 0);
  return {
    note: (parent, child, look) => {
      const before = looks.get(child);
      const count = counts.get(parent) ?? { known: 0, by: {} };
      counts.set(parent, count);
      if (before === undefined) count.known++;
      else count.by[before] = (count.by[before] ?? 1) - 1;
      count.by[look] = (count.by[look] ?? 0) + 1;
      looks.set(child, look);
      parents.set(child, parent);
    },
    told: (parent, fan) => {
      documents.set(parent, fan);
    },
    fan: (parent) => {
      const document = documents.get(parent);
      const count = counts.get(parent);
      if (document === undefined && count === undefined) return undefined;
      // The children say more than the server's counts: a retrying child is not a waiting one.
      if (document === undefined || count === undefined || isShort(parent)) return document && fanOf(document);
      const unmade = Math.max(0, (document.total ?? count.known) - count.known);
      const by = { ...count.by };
      if (unmade > 0) by.pending = (by.pending ?? 0) + unmade;
      return { total: document.total, by };
    },
    isShort,
    parentOf: (child) => parents.get(child),
  };
}
