import { lazy, Suspense, useState } from "react";
import { Redirect, Route, Router, Switch, useLocation } from "wouter";
import { useLive } from "./live/useLive";
import { PLACES } from "./places";
import { Account } from "./ui/Account";
import { Broken } from "./ui/Broken";
import { copyLink } from "./ui/copyLink";
import { Gate } from "./ui/Gate";
import { LiveDot } from "./ui/LiveDot";
import { Shell } from "./ui/Shell";
import { Skeleton } from "./ui/Skeleton";
import { useKeys } from "./use/useKeys";

const Overview = lazy(() => import("./pages/overview"));
const Jobs = lazy(() => import("./pages/jobs"));
const Job = lazy(() => import("./pages/job"));
const Recipes = lazy(() => import("./pages/recipes"));
const Recipe = lazy(() => import("./pages/recipe"));
const Workers = lazy(() => import("./pages/workers"));
const Providers = lazy(() => import("./pages/providers"));
const DeadLetters = lazy(() => import("./pages/dead-letters"));
const Audit = lazy(() => import("./pages/audit"));
const Settings = lazy(() => import("./pages/settings"));
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

/** The pages, each loaded when it is first asked for. They read what is in the path with `useParams`. */
function Pages() {
  return (
    <Switch>
      <Route path="/" component={Overview} />
      <Route path="/jobs" component={Jobs} />
      <Route path="/jobs/:id" component={Job} />
      <Route path="/recipes" component={Recipes} />
      <Route path="/recipes/:name" component={Recipe} />
      <Route path="/workers" component={Workers} />
      <Route path="/providers" component={Providers} />
      <Route path="/dead-letters" component={DeadLetters} />
      <Route path="/audit" component={Audit} />
      <Route path="/settings" component={Settings} />
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
