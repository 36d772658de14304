/**
 * The contract between the console and the page of an extension: an ES module that exports
 * `mount(element, api): () => void`. It draws into the element, and what it returns takes everything away again.
 */
import { type Asked, ask } from "../../api/client";

/** What the page of an extension is handed. */
export interface ExtensionApi {
  /** Asks the API with the session of the console. Answers the JSON; a problem is thrown as an error. */
  readonly ask: <T>(path: string, asked?: Asked) => Promise<T>;
  /** Goes to a page of the console, such as `/jobs/ID`. */
  readonly go: (path: string) => void;
  readonly caller: string;
}

export interface ExtensionModule<Place = HTMLElement> {
  readonly mount: (element: Place, api: ExtensionApi) => () => void;
}

export function apiOf(caller: string, go: (path: string) => void): ExtensionApi {
  return { ask, go, caller };
}

/**
 * Load the module and let it draw. The answer takes the page away, also while it is still being loaded. What goes wrong
 * is told, unless the page is gone by then.
 */
export function mounted<Place extends Pick<HTMLElement, "replaceChildren">>(
  load: () => Promise<Partial<ExtensionModule<Place>>>,
  element: Place,
  api: ExtensionApi,
  onError: (error: unknown) => void,
): () => void {
  let isGone = false;
  let unmount: (() => void) | undefined;
  load()
    .then((module) => {
      if (isGone) return;
      if (typeof module.mount !== "function") throw new Error("The page's module exports no function mount");
      unmount = module.mount(element, api);
    })
    .catch((error: unknown) => {
      if (!isGone) onError(error);
    });
  return () => {
    isGone = true;
    unmount?.();
    element.replaceChildren();
  };
}
