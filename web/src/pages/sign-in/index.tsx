import { type FormEvent, useState } from "react";
import { type Problem, problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { Field } from "../../ui/Field";
import { Input } from "../../ui/Input";
import { Mark } from "../../ui/Mark";
import { ProblemView } from "../../ui/ProblemView";
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
      <div className="w-full max-w-sm">
        <div className="mb-5 flex flex-col items-center gap-3 text-center">
          <Mark size={34} />
          <h1 className="font-semibold text-[18px] tracking-[-0.015em]">Sign in to Windlass</h1>
        </div>
        <form onSubmit={submit} className="flex flex-col gap-3 rounded-xl border border-line bg-panel p-5 shadow-raise">
          <Field label="API key">
            <Input
              type="password"
              name="key"
              autoComplete="current-password"
              spellCheck={false}
              className="font-mono"
              value={key}
              onChange={(event) => setKey(event.target.value)}
            />
          </Field>
          {problem !== undefined && <ProblemView problem={problem} />}
          <Button type="submit" variant="primary" busy={isBusy} className="h-8">
            Sign in
          </Button>
        </form>
      </div>
    </main>
  );
}
