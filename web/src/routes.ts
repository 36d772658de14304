/** The pages by their paths. Each is a file of its own, loaded when it is first asked for, or a moment before. */
import { type ComponentType, lazy } from "react";

interface Route {
  readonly path: string;
  readonly Page: ComponentType;
  readonly load: () => Promise<unknown>;
}

export const ROUTES: readonly Route[] = [
  route("/", () => import("./pages/overview")),
  route("/jobs", () => import("./pages/jobs")),
  route("/jobs/:id", () => import("./pages/job")),
  route("/recipes", () => import("./pages/recipes")),
  route("/recipes/:name", () => import("./pages/recipe")),
  route("/workers", () => import("./pages/workers")),
  route("/providers", () => import("./pages/providers")),
  route("/dead-letters", () => import("./pages/dead-letters")),
  route("/approvals", () => import("./pages/approvals")),
  route("/approvals/:id", () => import("./pages/approvals")),
  route("/audit", () => import("./pages/audit")),
  route("/x/:extension", () => import("./pages/extension")),
  route("/x/:extension/:page", () => import("./pages/extension")),
  route("/settings", () => import("./pages/settings")),
];

/** Begin to load the page of a path: while one points at its link, or while the server is asked who is there. */
export function preload(path: string): void {
  const wanted = ROUTES.find((one) => patternOf(one.path).test(path));
  // What cannot be loaded now is asked for again, and complained of, when it is to be shown.
  wanted?.load().catch(() => undefined);
}

export function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/:\w+/g, "[^/]+")}/?$`);
}

function route(path: string, load: () => Promise<{ default: ComponentType }>): Route {
  return { path, load, Page: lazy(load) };
}
