import {
  CircleX,
  Hand,
  Keyboard,
  Link,
  LogOut,
  type LucideIcon,
  MonitorCog,
  Moon,
  Play,
  Rows3,
  Rows4,
  Sun,
} from "lucide-react";
import { useLocation } from "wouter";
import { copyLink } from "../ui/copyLink";
import { toast } from "../ui/toast";
import { choose, usePreference } from "../use/usePreference";
import { useSession, useSignOut } from "../use/useSession";

/** Something that the palette does, rather than a place that it leads to. */
export interface Act {
  readonly name: string;
  readonly icon: LucideIcon;
  readonly keys?: string;
  /** Other words that people look for it by. */
  readonly also?: readonly string[];
  readonly run: () => void;
}

export function useActs(onKeys: () => void): readonly Act[] {
  const [, go] = useLocation();
  const [density] = usePreference("density");
  const signOut = useSignOut();
  const demo = useSession().demo?.job_id;
  return [
    ...(demo ? [{ name: "Open the demo job", icon: Play, run: () => go(`/jobs/${demo}`) }] : []),
    { name: "Show failed jobs", icon: CircleX, also: ["error", "red"], run: () => go("/jobs?status=failed") },
    {
      name: "Show jobs that wait for a person",
      icon: Hand,
      also: ["approval", "waiting", "event"],
      run: () => go("/jobs?activity=waiting"),
    },
    { name: "Use the dark theme", icon: Moon, also: ["night"], run: () => choose("theme", "dark") },
    { name: "Use the light theme", icon: Sun, also: ["day", "bright"], run: () => choose("theme", "light") },
    { name: "Use the system's theme", icon: MonitorCog, run: () => choose("theme", "system") },
    density === "cosy"
      ? { name: "Make rows compact", icon: Rows4, also: ["density"], run: () => choose("density", "compact") }
      : { name: "Make rows roomy", icon: Rows3, also: ["density", "cosy"], run: () => choose("density", "cosy") },
    { name: "Copy a link to this page", icon: Link, keys: "u", also: ["share", "address"], run: copyLink },
    { name: "Show keyboard shortcuts", icon: Keyboard, keys: "?", also: ["keys", "help"], run: onKeys },
    {
      name: "Sign out",
      icon: LogOut,
      also: ["log out", "leave"],
      run: () => {
        signOut().catch(() => toast("Signing out did not reach the server. Try again.", { kind: "bad" }));
      },
    },
  ];
}
