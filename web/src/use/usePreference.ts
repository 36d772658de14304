import { useSyncExternalStore } from "react";

/** What a person chose for this browser. Kept here and never sent: it is about a screen, not about an account. */
export interface Preferences {
  readonly theme: "system" | "dark" | "light";
  readonly density: "cosy" | "compact";
  /** "local", or the name of a time zone. */
  readonly zone: string;
}

const FIRST: Preferences = { theme: "system", density: "cosy", zone: "local" };
const PREFIX = "windlass.";
const listeners = new Set<() => void>();
let kept: Preferences = read();

export function preferences(): Preferences {
  return kept;
}

export function choose<K extends keyof Preferences>(name: K, value: Preferences[K]): void {
  kept = { ...kept, [name]: value };
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {
    // A browser that keeps nothing still does as it is told until the page is left.
  }
  show();
}

export function usePreference<K extends keyof Preferences>(name: K): [Preferences[K], (value: Preferences[K]) => void] {
  const value = useSyncExternalStore(listen, () => kept[name]);
  return [value, (next) => choose(name, next)];
}

/** Whether the page is dark now, by choice or by the system. */
export function useIsDark(): boolean {
  return useSyncExternalStore(listen, isDark);
}

/** Keep to the choice made in another tab, and to the system while that decides. Call once. */
export function watchPreferences(): void {
  window.addEventListener("storage", (event) => {
    if (event.key?.startsWith(PREFIX)) {
      kept = read();
      show();
    }
  });
  matchMedia("(prefers-color-scheme: light)").addEventListener("change", show);
  show();
}

function isDark(): boolean {
  return document.documentElement.classList.contains("dark");
}

function show(): void {
  const root = document.documentElement;
  const bright = matchMedia("(prefers-color-scheme: light)").matches;
  root.classList.toggle("dark", kept.theme === "system" ? !bright : kept.theme === "dark");
  root.dataset.density = kept.density;
  for (const hear of listeners) hear();
}

function listen(hear: () => void): () => void {
  listeners.add(hear);
  return () => listeners.delete(hear);
}

function read(): Preferences {
  const one = (name: keyof Preferences): string | null => {
    try {
      return localStorage.getItem(PREFIX + name);
    } catch {
      return null;
    }
  };
  const theme = one("theme");
  return {
    theme: theme === "dark" || theme === "light" ? theme : FIRST.theme,
    density: one("density") === "compact" ? "compact" : FIRST.density,
    zone: one("zone") ?? FIRST.zone,
  };
}
