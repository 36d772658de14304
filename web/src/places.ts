/** The pages that one can go to: where, what it is called, its drawing, and its letter after `g`. */
import {
  BookOpenText,
  Cpu,
  LayoutDashboard,
  ListTree,
  type LucideIcon,
  MailWarning,
  NotebookText,
  Plug,
  Puzzle,
  ScrollText,
  Settings,
  Stamp,
} from "lucide-react";

export interface Place {
  readonly path: string;
  readonly name: string;
  readonly icon: LucideIcon;
  /** None: a page of an extension. */
  readonly letter?: string;
}

export const PLACES: readonly Place[] = [
  { path: "/", name: "Overview", icon: LayoutDashboard, letter: "o" },
  { path: "/jobs", name: "Jobs", icon: ListTree, letter: "j" },
  { path: "/recipes", name: "Recipes", icon: BookOpenText, letter: "r" },
  { path: "/approvals", name: "Approvals", icon: Stamp, letter: "a" },
  { path: "/dead-letters", name: "Dead letters", icon: MailWarning, letter: "d" },
  { path: "/workers", name: "Workers", icon: Cpu, letter: "w" },
  { path: "/providers", name: "Providers", icon: Plug, letter: "p" },
  { path: "/audit", name: "Audit", icon: ScrollText, letter: "l" },
  { path: "/settings", name: "Settings", icon: Settings, letter: "s" },
];

/** The drawings that extensions can choose from. */
const ICONS: Readonly<Record<string, LucideIcon>> = {
  book: BookOpenText,
  cpu: Cpu,
  list: ListTree,
  notebook: NotebookText,
};

/** The ways to the pages of extensions. */
export function placesOf(pages: readonly { title: string; icon: string; path: string }[]): Place[] {
  return pages.map(({ title, icon, path }) => ({
    path,
    name: title,
    icon: Object.hasOwn(ICONS, icon) ? (ICONS[icon] ?? Puzzle) : Puzzle,
  }));
}
