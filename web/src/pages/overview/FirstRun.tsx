import { useMutation } from "@tanstack/react-query";
import { Play, Rocket } from "lucide-react";
import { useLocation } from "wouter";
import { ask } from "../../api/client";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { ProblemView } from "../../ui/ProblemView";
import { useSession } from "../../use/useSession";
import { useRecipes } from "../recipes/recipes";

/** Before the first job: a button that makes one, or the command that does. */
export default function FirstRun() {
  const recipes = useRecipes();
  const names = recipes.data?.map((one) => one.name) ?? [];
  const example = names.includes("hello") ? "hello" : names[0];
  const session = useSession();
  const [, go] = useLocation();
  const run = useMutation({
    mutationFn: () => ask<{ job_id: string }>("/console/demo/run", { method: "POST" }),
    onSuccess: ({ job_id }) => go(`/jobs/${job_id}`),
  });
  return (
    <>
      <Empty
        icon={Rocket}
        title={session.isAdmin ? "Nothing has run yet" : "Nothing of yours has run yet"}
        line={
          session.demo === null
            ? "Submit a job from here, or from a shell."
            : "See one job with a fan-out, a retry and an approval by a person."
        }
        command={session.demo === null ? example && `windlass submit ${example}` : undefined}
        action={
          session.demo === null ? (
            <Button variant="primary" icon={<Play size={13} aria-hidden="true" />} onClick={() => go("/recipes")}>
              Choose a recipe
            </Button>
          ) : (
            <Button
              variant="primary"
              icon={<Play size={13} aria-hidden="true" />}
              busy={run.isPending}
              onClick={() => run.mutate()}
            >
              Run the demo
            </Button>
          )
        }
      />
      {run.error !== null && (
        <div className="mx-auto max-w-lg px-4">
          <ProblemView problem={run.error} onRetry={() => run.mutate()} />
        </div>
      )}
    </>
  );
}
