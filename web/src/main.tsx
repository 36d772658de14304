import { QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Problem } from "./api/client";
import { App } from "./app";
import { preload } from "./routes";
import { watchPreferences } from "./use/usePreference";
import { SESSION_KEY } from "./use/useSession";
import "./index.css";

const queries: QueryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      // The session ended while the page was open: the gate must know, independent of the part that noticed.
      if (error instanceof Problem && error.isSignedOut) queries.setQueryData(SESSION_KEY, null);
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // What was refused once is refused again; only what did not arrive is worth another try.
      retry: (tries, error) => tries < 2 && !(error instanceof Problem && error.body.status >= 400 && error.body.status < 500), // biome-ignore format: one thought
    },
  },
});

watchPreferences();
preload(location.pathname.replace(/^\/console/, "") || "/");
const root = document.getElementById("root");
if (root === null) throw new Error("index.html has no #root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
