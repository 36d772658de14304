import { lazy, Suspense } from "react";
import { Route, Router, Switch } from "wouter";

const NotFound = lazy(() => import("./pages/not-found"));

/** The pages, each loaded when it is first asked for. */
export function App() {
  return (
    <Router base="/console">
      <Suspense>
        <Switch>
          <Route>
            <NotFound />
          </Route>
        </Switch>
      </Suspense>
    </Router>
  );
}
