import { MailCheck, SearchX } from "lucide-react";
import { useState } from "react";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Input } from "../../ui/Input";
import { Page } from "../../ui/Page";
import { Select } from "../../ui/Select";
import { useSearch } from "../../use/useSearch";
import { useSession } from "../../use/useSession";
import { Loaded } from "../Loaded";
import { DealDialog } from "./DealDialog";
import { LetterRow } from "./LetterRow";
import { type Act, type LetterList, type Letters, matching, useLetters } from "./letters";

/** Every job may have failed in its own way, and a list of thousands is of no use. */
const SHOWN_FIRST = 100;
const FIRST = { q: "", recipe: "", open: "" };

export default function DeadLettersPage() {
  const letters = useLetters();
  const [search, setSearch] = useSearch(FIRST);
  const recipes = [...new Set(letters.data?.items.map((one) => one.recipe))].sort();
  const jobs = letters.data?.items.reduce((sum, one) => sum + one.count, 0);
  return (
    <Page
      title="Dead letters"
      lead={
        letters.data &&
        letters.data.items.length > 0 && (
          <span className="tabular-nums">
            {jobs?.toLocaleString("en")} {jobs === 1 ? "job" : "jobs"} of {letters.data.items.length}{" "}
            {letters.data.items.length === 1 ? "kind" : "kinds"}
          </span>
        )
      }
      actions={
        <>
          {recipes.length > 1 && (
            <Select
              aria-label="Recipe"
              className="max-w-40"
              value={search.recipe}
              onChange={(recipe) => setSearch({ recipe })}
              choices={[{ value: "", label: "Every recipe" }, ...recipes.map((one) => ({ value: one, label: one }))]}
            />
          )}
          <div className="w-44">
            <Input
              type="search"
              data-filter
              aria-label="Find a failure"
              placeholder="Find a failure"
              value={search.q}
              onChange={(event) => setSearch({ q: event.target.value })}
            />
          </div>
        </>
      }
    >
      <Loaded query={letters} rows={6}>
        {(list) => <Kinds list={list} />}
      </Loaded>
    </Page>
  );
}

function Kinds({ list }: { readonly list: LetterList }) {
  const [search, setSearch] = useSearch(FIRST);
  const [asking, setAsking] = useState<{ readonly letters: Letters; readonly act: Act } | null>(null);
  const session = useSession();
  const [most, setMost] = useState(SHOWN_FIRST);
  const shown = matching(list.items, search.q, search.recipe);
  if (list.items.length === 0)
    return (
      <Empty
        icon={MailCheck}
        title="No dead letters"
        line="A job is listed here after a step has failed for good, until the job is run again or discarded. Both work on all jobs of a kind."
      />
    );
  if (shown.length === 0)
    return (
      <Empty
        icon={SearchX}
        title="No failure matches"
        line={`None of ${list.items.length} kinds matches.`}
        action={<Button onClick={() => setSearch({ q: "", recipe: "" })}>Show all</Button>}
      />
    );
  return (
    <div className="flex flex-col gap-3 px-4 pb-6">
      <ul className="overflow-hidden rounded-xl border border-line bg-panel">
        {shown.slice(0, most).map((one) => (
          <LetterRow
            key={one.fingerprint}
            letters={one}
            isOpen={search.open === one.fingerprint}
            why={session.can("jobs:write") ? undefined : "Your key may only read jobs (scope jobs:write)"}
            onToggle={() => setSearch({ open: search.open === one.fingerprint ? "" : one.fingerprint })}
            onAct={(act) => setAsking({ letters: one, act })}
          />
        ))}
      </ul>
      {shown.length > most && (
        <div className="flex justify-center">
          <Button onClick={() => setMost(most + SHOWN_FIRST)}>
            Show {Math.min(SHOWN_FIRST, shown.length - most)} more kinds
          </Button>
        </div>
      )}
      {list.is_capped && (
        <p className="text-[12px] text-dim">
          The newest {list.looked_at.toLocaleString("en")} failed jobs were looked at; older ones come up as these are
          dealt with.
        </p>
      )}
      {asking !== null && <DealDialog {...asking} onClose={() => setAsking(null)} />}
    </div>
  );
}
