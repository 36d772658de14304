import { type ReactNode, useId } from "react";

interface SegmentedProps<Value extends string> {
  readonly label: string;
  readonly value: Value;
  readonly onChange: (value: Value) => void;
  readonly choices: readonly { readonly value: Value; readonly label: string; readonly icon?: ReactNode }[];
}

/** One of a few, all of them in sight. */
export function Segmented<Value extends string>({ label, value, onChange, choices }: SegmentedProps<Value>) {
  const name = useId();
  return (
    <fieldset className="inline-flex w-fit gap-0.5 rounded-lg border border-line bg-field p-0.5">
      <legend className="sr-only">{label}</legend>
      {choices.map((choice) => (
        <label
          key={choice.value}
          className="flex h-6 cursor-pointer items-center gap-1.5 rounded-md border border-transparent px-2.5 text-dim hover:text-fg has-checked:border-line has-checked:bg-panel2 has-checked:font-medium has-checked:text-fg has-focus-visible:outline-2 has-focus-visible:outline-accent"
        >
          <input
            type="radio"
            name={name}
            value={choice.value}
            checked={choice.value === value}
            onChange={() => onChange(choice.value)}
            className="sr-only"
          />
          {choice.icon}
          {choice.label}
        </label>
      ))}
    </fieldset>
  );
}
