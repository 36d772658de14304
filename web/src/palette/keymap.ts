/** Every key of the console, as the sheet shows them. A page binds its own keys; this says so in one place. */
import { PLACES } from "../places";

export interface KeyLine {
  /** One or more keys; those with a space are pressed one after the other. */
  readonly keys: readonly string[];
  readonly does: string;
}

export interface KeyGroup {
  readonly name: string;
  readonly lines: readonly KeyLine[];
}

export const KEY_GROUPS: readonly KeyGroup[] = [
  {
    name: "Everywhere",
    lines: [
      { keys: ["mod+k"], does: "Search, jump, command" },
      { keys: ["/"], does: "Filter or find on this page" },
      { keys: ["?"], does: "This sheet" },
      { keys: ["u"], does: "Copy a link to this page" },
      { keys: ["Esc"], does: "Close, or back" },
    ],
  },
  { name: "Go to", lines: PLACES.map((place) => ({ keys: [`g ${place.letter}`], does: place.name })) },
  {
    name: "Jobs",
    lines: [
      { keys: ["j", "k"], does: "Next and previous row" },
      { keys: ["Enter"], does: "Open" },
      { keys: ["x"], does: "Choose" },
      { keys: ["shift+x"], does: "Choose up to here" },
      { keys: ["."], does: "Actions" },
      { keys: ["v"], does: "Save this view" },
    ],
  },
  {
    name: "Approvals",
    lines: [
      { keys: ["j", "k"], does: "Next and previous" },
      { keys: ["a"], does: "Approve" },
      { keys: ["r"], does: "Reject" },
    ],
  },
  {
    name: "A job",
    lines: [
      { keys: ["1", "2", "3", "4", "5"], does: "Its views" },
      { keys: ["."], does: "Actions" },
      { keys: ["r"], does: "Retry" },
      { keys: ["c"], does: "Cancel" },
    ],
  },
  {
    name: "Graph, when it has the focus",
    lines: [
      { keys: ["↑", "↓", "←", "→"], does: "Along the edges" },
      { keys: ["o"], does: "Open or fold a fan-out" },
      { keys: ["f"], does: "Fit" },
      { keys: ["l"], does: "Follow running steps" },
      { keys: ["e"], does: "Only failed" },
      { keys: ["h"], does: "Hide finished" },
      { keys: ["c"], does: "Critical path" },
      { keys: ["t"], does: "Turn" },
      { keys: ["m"], does: "Minimap" },
      { keys: ["+", "-"], does: "Larger and smaller" },
    ],
  },
];

const SIGNS: Readonly<Record<string, string>> = { shift: "⇧", Enter: "↵" };

/** The caps that are drawn for a key: `shift+x` is two, pressed together. */
export function capsOf(key: string, mod: string): readonly string[] {
  return key.split(/[ +](?=.)/).map((part) => (part === "mod" ? mod : (SIGNS[part] ?? part)));
}
