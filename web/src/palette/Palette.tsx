import { useQuery } from "@tanstack/react-query";
import { Command } from "cmdk";
import { BookOpenText, Hash, Search } from "lucide-react";
import { Dialog } from "radix-ui";
import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { ask } from "../api/client";
import type { components } from "../api/types.gen";
import { PLACES } from "../places";
import { shortId } from "../shortId";
import { shownJob } from "../state";
import { Ago } from "../ui/Ago";
import { Kbd } from "../ui/Kbd";
import { StatePill } from "../ui/StatePill";
import { type Act, useActs } from "./acts";
import { jobIdIn } from "./jobId";

type JobPage = components["schemas"]["JobPage"];
type RecipeList = components["schemas"]["RecipeList"];

interface PaletteProps {
  readonly onClose: () => void;
  readonly onKeys: () => void;
}

/** Jump to anything by writing a piece of it. */
export default function Palette({ onClose, onKeys }: PaletteProps) {
  const [text, setText] = useState("");
  const [, go] = useLocation();
  const acts = useActs(onKeys);
  const jobs = useQuery({ queryKey: ["palette", "jobs"], queryFn: () => ask<JobPage>("/jobs?limit=30") });
  const recipes = useQuery({ queryKey: ["palette", "recipes"], queryFn: () => ask<RecipeList>("/recipes") });
  const id = jobIdIn(text);
  const run = (act: () => void) => (): void => {
    onClose();
    act();
  };

  return (
    <Dialog.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Dialog.Portal>
        <Dialog.Overlay className="fixed inset-0 z-40 bg-shade" />
        <Dialog.Content
          aria-describedby={undefined}
          className="fixed top-[10vh] left-1/2 z-50 w-[600px] max-w-[calc(100vw-24px)] -translate-x-1/2 overflow-hidden rounded-xl border border-line2 bg-panel shadow-float outline-none"
        >
          <Dialog.Title className="sr-only">Search or jump to</Dialog.Title>
          <Command label="Search or jump to" loop className="palette">
            <div className="flex items-center gap-2.5 border-line border-b px-4">
              <Search size={15} aria-hidden="true" className="shrink-0 text-dim" />
              <Command.Input
                value={text}
                onValueChange={setText}
                placeholder="A page, a job id, a recipe, a command…"
                className="h-12 w-full bg-transparent text-[14px] outline-none placeholder:text-dim"
              />
            </div>
            <Command.List className="max-h-[min(60vh,420px)] overflow-y-auto overscroll-contain p-1.5">
              <Command.Empty className="px-3 py-8 text-center text-dim">
                No match. A whole job id opens its job.
              </Command.Empty>
              {id !== undefined && (
                <Command.Group heading="Job">
                  <Line value={`open ${text}`} icon={<Hash size={14} />} onSelect={run(() => go(`/jobs/${id}`))}>
                    Open job <code className="font-mono text-[12px]">{id}</code>
                  </Line>
                </Command.Group>
              )}
              <Command.Group heading="Pages">
                {PLACES.map(({ path, name, icon: Icon, letter }) => (
                  <Line
                    key={path}
                    value={name}
                    icon={<Icon size={14} />}
                    keys={`g ${letter}`}
                    onSelect={run(() => go(path))}
                  >
                    {name}
                  </Line>
                ))}
              </Command.Group>
              <Command.Group heading="Commands">
                {acts.map((act: Act) => (
                  <Line
                    key={act.name}
                    value={act.name}
                    keywords={act.also}
                    icon={<act.icon size={14} />}
                    keys={act.keys}
                    onSelect={run(act.run)}
                  >
                    {act.name}
                  </Line>
                ))}
              </Command.Group>
              {(recipes.data?.items.length ?? 0) > 0 && (
                <Command.Group heading="Recipes">
                  {recipes.data?.items.map((recipe) => (
                    <Line
                      key={recipe.name}
                      value={`recipe ${recipe.name}`}
                      icon={<BookOpenText size={14} />}
                      onSelect={run(() => go(`/recipes/${encodeURIComponent(recipe.name)}`))}
                    >
                      {recipe.name}
                    </Line>
                  ))}
                </Command.Group>
              )}
              {(jobs.data?.items.length ?? 0) > 0 && (
                <Command.Group heading="Newest jobs">
                  {jobs.data?.items.map((job) => (
                    <Line
                      key={job.job_id}
                      value={`${job.recipe} ${job.job_id}`}
                      icon={<Hash size={14} />}
                      onSelect={run(() => go(`/jobs/${job.job_id}`))}
                      end={
                        <span className="flex items-center gap-3 text-[12px] text-dim">
                          <Ago at={job.created_at} />
                          <StatePill {...shownJob(job)} />
                        </span>
                      }
                    >
                      {job.recipe} <code className="ml-1 font-mono text-[12px] text-dim">{shortId(job.job_id)}</code>
                    </Line>
                  ))}
                </Command.Group>
              )}
            </Command.List>
          </Command>
        </Dialog.Content>
      </Dialog.Portal>
    </Dialog.Root>
  );
}

interface LineProps {
  readonly value: string;
  readonly icon: ReactNode;
  readonly children: ReactNode;
  readonly onSelect: () => void;
  readonly keywords?: readonly string[] | undefined;
  readonly keys?: string | undefined;
  readonly end?: ReactNode;
}

function Line({ value, icon, children, onSelect, keywords, keys, end }: LineProps) {
  return (
    <Command.Item
      value={value}
      {...(keywords !== undefined && { keywords: [...keywords] })}
      onSelect={onSelect}
      className="flex h-9 cursor-pointer items-center gap-2.5 rounded-md px-2.5 data-[selected=true]:bg-chosen"
    >
      <span aria-hidden="true" className="text-dim">
        {icon}
      </span>
      <span className="min-w-0 flex-1 truncate">{children}</span>
      {end}
      {keys !== undefined && (
        <span className="flex gap-0.5">
          {keys.split(" ").map((key) => (
            <Kbd key={key}>{key}</Kbd>
          ))}
        </span>
      )}
    </Command.Item>
  );
}
