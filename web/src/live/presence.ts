/**
 * Which tabs are still there. A tab holds a lock under its name for as long as it lives, however it ends; the hub
 * queues for each of them, and learns of the end when it gets the lock. Where there are no locks (a plain-http host), a tab that was
 * silent for long is taken for gone: hidden tabs may speak only once a minute.
 */

export const PING_MS = 20_000;
const SILENT_MS = 150_000;

export function tabLock(tab: string): string {
  return `windlass-tab-${tab}`;
}

export interface Presence {
  add(tab: string): void;
  heard(tab: string): void;
  remove(tab: string): void;
}

export function watchTabs(onGone: (tab: string) => void, locks = lockManager()): Presence {
  const heardAt = new Map<string, number>();
  const gone = (tab: string): void => {
    if (heardAt.delete(tab)) onGone(tab);
  };
  setInterval(() => {
    const before = Date.now() - SILENT_MS;
    for (const [tab, at] of heardAt) if (at < before) gone(tab);
  }, PING_MS);
  return {
    add: (tab) => {
      const isNew = !heardAt.has(tab);
      heardAt.set(tab, Date.now());
      if (isNew) locks?.request(tabLock(tab), () => gone(tab)).catch(() => undefined);
    },
    heard: (tab) => {
      if (heardAt.has(tab)) heardAt.set(tab, Date.now());
    },
    remove: gone,
  };
}

/** Take the lock of this tab, and keep it until the tab dies. Resolves once it is held, or cannot be. */
export async function holdTabLock(tab: string, locks = lockManager()): Promise<void> {
  if (locks === undefined) return;
  await new Promise<void>((held) => {
    locks
      .request(tabLock(tab), () => {
        held();
        return new Promise<never>(() => undefined);
      })
      .catch(() => held());
  });
}

/** Not there on a plain-http host. */
export function lockManager(): LockManager | undefined {
  return typeof navigator === "undefined" ? undefined : (navigator.locks as LockManager | undefined);
}
