import { lazy, type ReactNode, Suspense } from "react";
import { useSessionQuery } from "../use/useSession";
import { Mark } from "./Mark";
import { ProblemView } from "./ProblemView";

const SignIn = lazy(() => import("../pages/sign-in"));

/** Shows the sign-in page without a session. The address stays, so signing in leads to the page that was asked for. */
export function Gate({ children }: { readonly children: ReactNode }) {
  const session = useSessionQuery();
  if (session.data) return children;
  if (session.data === null) {
    return (
      <Suspense>
        <SignIn />
      </Suspense>
    );
  }
  if (session.error === null) {
    return (
      <main aria-busy="true" aria-label="Signing in" className="grid h-full place-items-center">
        <Mark size={34} />
      </main>
    );
  }
  return (
    <main className="grid h-full place-items-center p-4">
      <div className="w-full max-w-md">
        <ProblemView problem={session.error} onRetry={() => session.refetch()} />
      </div>
    </main>
  );
}
