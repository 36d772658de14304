import { TriangleAlert } from "lucide-react";
import { type FormEvent, useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { Dialog } from "../../ui/Dialog";
import { Field } from "../../ui/Field";
import { Input } from "../../ui/Input";
import { ProblemView } from "../../ui/ProblemView";
import { Select } from "../../ui/Select";
import { makeKey, type NewKey, SCOPES, type Scope } from "./keys";

interface NewKeyDialogProps {
  readonly onMade: () => void;
  readonly onClose: () => void;
}

const LIVES = [
  { value: "30d", label: "30 days" },
  { value: "90d", label: "90 days" },
  { value: "365d", label: "A year" },
  { value: "", label: "Until it is revoked" },
];

export function NewKeyDialog({ onMade, onClose }: NewKeyDialogProps) {
  const [made, setMade] = useState<NewKey>();
  if (made !== undefined) return <Shown made={made} onClose={onClose} />;
  const keep = (key: NewKey): void => {
    setMade(key);
    onMade();
  };
  return <Wish onMade={keep} onClose={onClose} />;
}

function Wish({ onMade, onClose }: { readonly onMade: (made: NewKey) => void; readonly onClose: () => void }) {
  const [name, setName] = useState("");
  const [caller, setCaller] = useState("");
  const [scopes, setScopes] = useState<readonly Scope[]>(["jobs:read", "jobs:write"]);
  const [life, setLife] = useState("90d");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const lacking =
    name.trim() === "" ? "Enter the purpose" : caller.trim() === "" ? "Enter the caller" : scopes.length === 0 ? "Choose at least one scope" : undefined; // biome-ignore format: one thought
  const toggle = (scope: Scope): void =>
    setScopes(scopes.includes(scope) ? scopes.filter((one) => one !== scope) : [...scopes, scope]);

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (lacking !== undefined || isBusy) return;
    setBusy(true);
    setProblem(undefined);
    try {
      const wish = { name: name.trim(), caller: caller.trim(), caller_type: "user" as const, scopes: [...scopes] };
      onMade(await makeKey(life === "" ? wish : { ...wish, expires_in: life }));
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };

  return (
    <Dialog
      title="New API key"
      onClose={onClose}
      footer={
        <>
          <Button onClick={onClose}>Go back</Button>
          <Button type="submit" form="new-key" variant="primary" busy={isBusy} why={lacking}>
            Make the key
          </Button>
        </>
      }
    >
      <form id="new-key" onSubmit={submit} className="flex flex-col gap-3.5">
        <Field label="What it is for">
          <Input
            value={name}
            maxLength={200}
            placeholder="nightly indexing"
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field label="Caller" hint="The owner of the jobs that are submitted with this key.">
          <Input
            value={caller}
            maxLength={200}
            placeholder="indexer"
            autoCapitalize="off"
            spellCheck={false}
            onChange={(event) => setCaller(event.target.value)}
          />
        </Field>
        <fieldset className="flex min-w-0 flex-col">
          <legend className="mb-1 font-medium text-[12px]">It may</legend>
          {SCOPES.map(({ scope, line }) => (
            <label key={scope} className="flex min-h-7 cursor-pointer flex-wrap items-center gap-x-2">
              <input
                type="checkbox"
                className="size-3.5 accent-accent"
                checked={scopes.includes(scope)}
                onChange={() => toggle(scope)}
              />
              <code className="w-20 font-mono text-[12px]">{scope}</code>
              <span className="text-dim max-sm:w-full max-sm:pl-6 max-sm:text-[12px]">{line}</span>
            </label>
          ))}
        </fieldset>
        <Field label="It is good for">
          <Select value={life} onChange={setLife} choices={LIVES} />
        </Field>
        {problem !== undefined && <ProblemView problem={problem} />}
      </form>
    </Dialog>
  );
}

/** The only moment in which the key is shown. */
function Shown({ made, onClose }: { readonly made: NewKey; readonly onClose: () => void }) {
  return (
    <Dialog
      title="The key was created"
      lead={`For ${made.caller}: ${made.name}`}
      onClose={onClose}
      footer={
        <Button variant="primary" onClick={onClose}>
          I have kept it
        </Button>
      }
    >
      <div className="flex items-center gap-1 rounded-md border border-line bg-field py-1 pr-1 pl-3">
        <code data-key className="min-w-0 flex-1 break-all font-mono text-[12px]">
          {made.key}
        </code>
        <Copy text={made.key} label="Copy the key" />
      </div>
      <p className="mt-3 flex gap-2 text-dim">
        <TriangleAlert size={14} aria-hidden="true" className="mt-0.5 shrink-0 text-warn" />
        Copy it now. The key is not shown again: the server stores only a digest of it.
      </p>
    </Dialog>
  );
}
