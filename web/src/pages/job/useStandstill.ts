import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { ask } from "../../api/client";
import type { StepState } from "../../api/schemas";
import type { ReasonDocument } from "./types";

/** Between two steps nothing runs for a moment: that is not worth a word. */
const PATIENCE_MS = 4_000;
const AGAIN_MS = 5_000;
/** Informative reasons first: that a step needs other steps is visible anyway. */
const TELLING: readonly StepState[] = ["QUEUED", "HELD", "PARKED", "READY"];

/** Why a job stands still, once it has for a while. A budget comes first: only a person can raise it. */
export function useStandstill(id: string, isStill: boolean): ReasonDocument | undefined {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (!isStill) return;
    const timer = setTimeout(() => setLong(true), PATIENCE_MS);
    return () => clearTimeout(timer);
  }, [isStill]);
  const { data } = useQuery({
    queryKey: ["job", id, "why"],
    queryFn: ({ signal }) => ask<{ items: ReasonDocument[] }>(`/jobs/${id}/why`, { signal }),
    enabled: isLong,
    refetchInterval: AGAIN_MS,
    retry: false,
  });
  if (!isLong) return undefined;
  return data?.items.find(isForMoney) ?? data?.items.find((one) => TELLING.includes(one.status));
}

/** Whether a step waits for a budget that is used up. */
export function isForMoney(reason: ReasonDocument): boolean {
  return typeof reason.detail.budget === "object" && reason.detail.budget !== null;
}
