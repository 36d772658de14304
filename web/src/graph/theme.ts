import { LOOKS, type Look } from "../state";

/** The colours of the page, as a canvas needs them. */
export interface Theme {
  readonly bg: string;
  readonly panel: string;
  readonly line: string;
  readonly fg: string;
  readonly dim: string;
  readonly accent: string;
  readonly look: Readonly<Record<Look, string>>;
}

export function readTheme(): Theme {
  const style = getComputedStyle(document.documentElement);
  const token = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const look = Object.fromEntries(LOOKS.map((one) => [one, token(`st-${one}`)])) as Record<Look, string>;
  return {
    bg: token("bg"),
    panel: token("panel"),
    line: token("line"),
    fg: token("fg"),
    dim: token("dim"),
    accent: token("accent"),
    look,
  };
}

/** Dark and light are a class of the page: hear of it when that changes. */
export function onThemeChange(hear: () => void): () => void {
  const observer = new MutationObserver(hear);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  return () => observer.disconnect();
}

export function hasReducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
