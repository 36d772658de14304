import { useEffect, useRef, useState } from "react";
import { useLocation } from "wouter";
import { problemOf } from "../../api/client";
import { Page } from "../../ui/Page";
import { ProblemView } from "../../ui/ProblemView";
import { type ConsolePage, useSession } from "../../use/useSession";
import NotFound from "../not-found";
import { apiOf, type ExtensionModule, mounted } from "./mounting";

/** The page of an extension: what its module draws, under the console's own title. */
export default function ExtensionPage() {
  const [path] = useLocation();
  const { pages, caller } = useSession();
  const page = pages.find((one) => one.path === path.replace(/\/$/, ""));
  return page === undefined ? <NotFound /> : <Mounted key={page.path} page={page} caller={caller} />;
}

function Mounted({ page, caller }: { readonly page: ConsolePage; readonly caller: string }) {
  const [, go] = useLocation();
  const place = useRef<HTMLDivElement>(null);
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    if (place.current === null) return undefined;
    const load = (): Promise<Partial<ExtensionModule>> => import(/* @vite-ignore */ page.module);
    return mounted(load, place.current, apiOf(caller, go), setError);
  }, [page.module, caller, go]);
  return (
    <Page title={page.title}>
      {error !== undefined && <ProblemView problem={problemOf(error)} />}
      <div ref={place} className="px-4 pb-6" />
    </Page>
  );
}
