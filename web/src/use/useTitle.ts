import { useEffect } from "react";

/** The title of the tab. */
export function useTitle(title: string | undefined): void {
  useEffect(() => {
    document.title = title ? `${title} · Windlass` : "Windlass";
  }, [title]);
}
