import { KeyRound } from "lucide-react";
import { type FormEvent, type ReactNode, useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { Copy } from "../../ui/Copy";
import { Field } from "../../ui/Field";
import { Input } from "../../ui/Input";
import { Mark } from "../../ui/Mark";
import { ProblemView } from "../../ui/ProblemView";
import { TipLayer } from "../../ui/TipLayer";
import { Toaster } from "../../ui/toast";
import { useSignIn } from "../../use/useSession";
import { useTitle } from "../../use/useTitle";

/** Signing in needs no mail and no account elsewhere: the link that the server printed, or a key. */
export default function SignIn() {
  useTitle("Sign in");
  const signIn = useSignIn();
  const [key, setKey] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();

  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    if (isBusy || key.trim() === "") return;
    setBusy(true);
    setProblem(undefined);
    try {
      await signIn(key.trim());
    } catch (error) {
      setProblem(problemOf(error));
      setBusy(false);
    }
  };

  return (
    <main className="grid h-full place-items-center overflow-y-auto p-4">
      <div className="w-full max-w-[380px] py-6">
        <div className="mb-6 flex flex-col items-center gap-3 text-center">
          <span className="grid size-12 place-items-center rounded-2xl border border-line bg-panel shadow-raise">
            <Mark size={26} />
          </span>
          <h1 className="font-semibold text-[18px] tracking-[-0.015em]">Sign in to Windlass</h1>
        </div>
        <form onSubmit={submit} className="flex flex-col gap-3 rounded-xl border border-line bg-panel p-5 shadow-raise">
          <Field label="API key" hint="The server exchanges the key for a cookie. This browser does not store the key.">
            <Input
              type="password"
              name="key"
              autoComplete="current-password"
              spellCheck={false}
              placeholder="wl_…"
              className="h-8 font-mono"
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          </Field>
          {problem !== undefined && <ProblemView problem={problem} />}
          <Button
            type="submit"
            variant="primary"
            busy={isBusy}
            why={key.trim() === "" ? "Paste a key first" : undefined}
            icon={<KeyRound size={14} aria-hidden="true" />}
            size="large"
          >
            Sign in
          </Button>
        </form>
        <section aria-label="Other ways" className="mt-5 flex flex-col gap-3 px-1 text-[12px] text-dim leading-normal">
          <Way title="Started it yourself?" command="windlass console link">
            The link that <code className="font-mono text-fg">windlass up</code> prints signs you in, once. For another:
          </Way>
          <Way title="On a server?" command="windlass keys create --caller you">
            The operator of this server can make a key for you:
          </Way>
        </section>
      </div>
      <Toaster />
      <TipLayer />
    </main>
  );
}

interface WayProps {
  readonly title: string;
  readonly command: string;
  readonly children: ReactNode;
}

function Way({ title, command, children }: WayProps) {
  return (
    <div>
      <b className="font-medium text-fg">{title}</b> {children}
      <div className="mt-1.5 flex items-center rounded-md border border-line bg-field py-0.5 pr-0.5 pl-2.5">
        <code className="min-w-0 flex-1 truncate font-mono text-fg">{command}</code>
        <Copy text={command} label={`Copy ${command}`} />
      </div>
    </div>
  );
}
