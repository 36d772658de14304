import { PanelRightClose, PanelRightOpen, Undo2, X } from "lucide-react";
import { lazy, Suspense, useEffect, useRef } from "react";
import { lookOf } from "../../graph/look";
import { useStep } from "../../graph/store";
import type { StepNo } from "../../graph/types";
import { saidOf } from "../../state";
import { Button } from "../../ui/Button";
import { IconButton } from "../../ui/IconButton";
import { ProblemView } from "../../ui/ProblemView";
import { Skeleton } from "../../ui/Skeleton";
import { StatePill } from "../../ui/StatePill";
import { useActsHere } from "./acts";
import { InspectorFrame, useInspectorFrame } from "./InspectorFrame";
import type { TabProps } from "./JobView";
import { useStepDetail } from "./useStepDetail";

const StepFacts = lazy(() => import("./StepFacts"));

interface InspectorProps extends TabProps {
  readonly no: StepNo;
}

/** All about one step. Beside the page where there is room, over it where there is not. */
export default function Inspector({ id, live, no, onSelect }: InspectorProps) {
  const step = useStep(live.graph, no);
  const frame = useInspectorFrame();
  const { data, error, refetch } = useStepDetail(id, live, no);
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    // On a narrow screen it lies over what was pressed: the focus goes with the eyes.
    if (matchMedia("(max-width: 767px)").matches) heading.current?.focus();
  }, []);
  if (step === undefined) return null;
  if (!frame.isOpen) {
    return (
      <div className="border-line border-l bg-panel p-1 max-md:hidden">
        <IconButton label={`Show ${step.label}`} onClick={frame.toggle}>
          <PanelRightOpen size={15} aria-hidden="true" />
        </IconButton>
      </div>
    );
  }
  const status = live.fact(no)?.status;
  return (
    <InspectorFrame frame={frame} label={`Step ${step.label}`}>
      <header className="flex items-start gap-2 border-line border-b px-4 py-2.5">
        <div className="min-w-0 flex-1">
          <h2 ref={heading} tabIndex={-1} className="truncate font-semibold text-[14px] outline-none">
            {step.label}
          </h2>
          <p className="mt-1 flex flex-wrap items-center gap-2">
            <StatePill look={lookOf(step)} word={status && saidOf(status)} />
            <RerunHere name={nameOf(step.name, data?.index ?? null)} />
          </p>
        </div>
        <IconButton label="Collapse" className="max-md:hidden" onClick={frame.toggle}>
          <PanelRightClose size={15} aria-hidden="true" />
        </IconButton>
        <IconButton label="Close" hint="Esc" onClick={() => onSelect(null)}>
          <X size={15} aria-hidden="true" />
        </IconButton>
      </header>
      <div className="flex min-h-0 flex-1 flex-col gap-4 overflow-y-auto px-4 py-3">
        {error !== null && <ProblemView problem={error} onRetry={refetch} />}
        {data === undefined && error === null && <Skeleton rows={6} label="Loading the step" />}
        {data !== undefined && (
          <Suspense>
            <StepFacts id={id} live={live} step={data} onSelect={onSelect} />
          </Suspense>
        )}
      </div>
    </InspectorFrame>
  );
}

function RerunHere({ name }: { readonly name: string }) {
  const { rerun } = useActsHere();
  return (
    <Button
      variant="ghost"
      className="h-5 px-1.5 text-[12px]"
      icon={<Undo2 size={12} aria-hidden="true" />}
      why={rerun.why}
      onClick={() => rerun.from(name)}
    >
      Run again from here…
    </Button>
  );
}

/** As plans call a step: `render`, or `render[3]` for a child. */
function nameOf(name: string, index: number | null): string {
  return index === null ? name : `${name}[${index}]`;
}
