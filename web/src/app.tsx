import { lazy, Suspense, useState } from "react";
import { Redirect, Route, Router, Switch, useLocation } from "wouter";
import { useLive } from "./live/useLive";
import { PLACES } from "./places";
import { ROUTES } from "./routes";
import { Account } from "./ui/Account";
import { Broken } from "./ui/Broken";
import { copyLink } from "./ui/copyLink";
import { Gate } from "./ui/Gate";
import { LiveDot } from "./ui/LiveDot";
import { Shell } from "./ui/Shell";
import { Skeleton } from "./ui/Skeleton";
import { useKeys } from "./use/useKeys";

const NotFound = lazy(() => import("./pages/not-found"));
const Palette = lazy(() => import("./palette/Palette"));
const KeySheet = lazy(() => import("./palette/KeySheet"));

export function App() {
  return (
    <Router base="/console">
      <Gate>
        <Inside />
      </Gate>
    </Router>
  );
}

function Inside() {
  const [path, go] = useLocation();
  const [over, setOver] = useState<"palette" | "keys">();
  const close = (): void => setOver(undefined);
  useKeys({
    "mod+k": () => setOver((now) => (now === "palette" ? undefined : "palette")),
    "?": () => setOver("keys"),
    "/": () => focusFilter() || setOver("palette"),
    u: () => void copyLink(),
    ...Object.fromEntries(PLACES.map((place) => [`g ${place.letter}`, () => go(place.path)])),
  });
  return (
    <Shell
      at={path}
      live={<LiveDot live={useLive()} />}
      account={<Account />}
      onSearch={() => setOver("palette")}
      onKeys={() => setOver("keys")}
    >
      <Broken at={path}>
        <Suspense fallback={<Skeleton rows={8} />}>
          <Pages />
        </Suspense>
      </Broken>
      <Suspense>
        {over === "palette" && <Palette onClose={close} onKeys={() => setOver("keys")} />}
        {over === "keys" && <KeySheet onClose={close} />}
      </Suspense>
    </Shell>
  );
}

/** They read what is in the path with `useParams`. */
function Pages() {
  return (
    <Switch>
      {ROUTES.map(({ path, Page }) => (
        <Route key={path} path={path} component={Page} />
      ))}
      <Route path="/sign-in">
        <Redirect to="/" replace />
      </Route>
      <Route component={NotFound} />
    </Switch>
  );
}

/** Whether the page has something to write a filter in; it has the focus now. */
function focusFilter(): boolean {
  const field = document.querySelector<HTMLElement>("[data-filter]");
  field?.focus();
  return field !== null;
}
