import { CircleAlert, Search, X } from "lucide-react";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";
import { IconButton } from "../../ui/IconButton";
import type { Filter } from "./filter";
import { useRecipeNames } from "./useRecipeNames";
import { type Completion, complete, type Known, type Option, parseText, take, textOf } from "./words";

interface FilterBarProps {
  readonly filter: Filter;
  /** Asked only while the filter is edited. */
  readonly known: (recipes: readonly string[]) => Known;
  readonly onChange: (filter: Filter) => void;
}

const NOTHING: Completion = { from: 0, to: 0, options: [] };

/**
 * The filter as a line one can write. What cannot be understood is said while it is written; the list follows when the
 * line is left or Enter is pressed, because half a name finds nothing.
 */
export function FilterBar({ filter, known, onChange }: FilterBarProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(() => textOf(filter));
  const [caret, setCaret] = useState(0);
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const recipes = useRecipeNames(isOpen);
  // The filter was changed elsewhere: by a chip, a view, or the back button.
  const told = textOf(filter);
  useEffect(() => setText(told), [told]);

  const { issues } = parseText(text);
  const completion = isOpen ? complete(text, caret, known(recipes)) : NOTHING;
  const options = completion.options;
  const isWriting = isOpen && caret === text.length && /\S$/.test(text);
  // The word that is still being written is not wrong yet, unless nothing begins like it.
  const issue = issues.find((one) => !(isWriting && options.length > 0 && text.endsWith(one.word)));

  const commit = (next: string): void => {
    const parsed = parseText(next);
    if (parsed.issues.length === 0) onChange(parsed.filter);
  };
  const write = (next: string, nextCaret: number): void => {
    setText(next);
    setCaret(nextCaret);
    setAt(-1);
    setOpen(true);
  };
  const choose = (option: Option): void => {
    const taken = take(text, completion, option);
    write(taken.text, taken.caret);
    if (option.isWhole) commit(taken.text);
    requestAnimationFrame(() => input.current?.setSelectionRange(taken.caret, taken.caret));
  };
  const press = (event: KeyboardEvent<HTMLInputElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const option = options[at] ?? (event.key === "Tab" ? options[0] : undefined);
    if (step !== undefined && options.length > 0) {
      event.preventDefault();
      setOpen(true);
      setAt((now) => (now + step + options.length + (now < 0 && step < 0 ? 1 : 0)) % options.length);
    } else if ((event.key === "Enter" || (event.key === "Tab" && /\S$/.test(text))) && option !== undefined) {
      event.preventDefault();
      choose(option);
    } else if (event.key === "Enter") {
      commit(text);
      setOpen(false);
    } else if (event.key === "Escape") {
      if (isOpen && options.length > 0) setOpen(false);
      else input.current?.blur();
    }
  };

  return (
    <div className="relative min-w-0 flex-1 basis-64">
      <Search
        size={13}
        aria-hidden="true"
        className="pointer-events-none absolute top-1/2 left-2 -translate-y-1/2 text-dim"
      />
      <input
        ref={input}
        data-filter
        role="combobox"
        aria-label="Filter jobs"
        aria-expanded={options.length > 0}
        aria-controls={`${id}-options`}
        aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        aria-invalid={issue !== undefined}
        aria-describedby={issue === undefined ? undefined : `${id}-issue`}
        autoComplete="off"
        spellCheck={false}
        placeholder="status:failed recipe:index label:team=a since:1h"
        value={text}
        onChange={(event) => write(event.target.value, event.target.selectionStart ?? event.target.value.length)}
        onSelect={(event) => setCaret(event.currentTarget.selectionStart ?? text.length)}
        onFocus={() => {
          // What is written next is a new word.
          setText((now) => (now === "" || now.endsWith(" ") ? now : `${now} `));
          setOpen(true);
        }}
        onBlur={() => {
          setOpen(false);
          setAt(-1);
          setText(text.trimEnd());
          commit(text);
        }}
        onKeyDown={press}
        className="h-7 w-full min-w-0 rounded-md border border-line bg-field pr-7 pl-7 font-mono text-[12px] text-fg placeholder:text-dim hover:border-line2 focus-visible:border-accent focus-visible:outline-1 focus-visible:outline-offset-0 aria-invalid:border-danger"
      />
      {text !== "" && (
        <IconButton
          label="Clear the filter"
          className="absolute top-0 right-0"
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => {
            write("", 0);
            commit("");
          }}
        >
          <X size={13} aria-hidden="true" />
        </IconButton>
      )}
      {issue !== undefined && (
        <p
          id={`${id}-issue`}
          role="alert"
          className={`absolute inset-x-0 z-30 flex items-start gap-1.5 rounded-md border border-danger/40 bg-panel px-2 py-1.5 text-[12px] shadow-float ${options.length > 0 ? "bottom-full mb-1" : "top-full mt-1"}`}
        >
          <CircleAlert size={13} aria-hidden="true" className="mt-0.5 shrink-0 text-danger" />
          {issue.message}
        </p>
      )}
      <Options id={id} options={options} at={at} onChoose={choose} />
    </div>
  );
}

interface OptionsProps {
  readonly id: string;
  readonly options: readonly Option[];
  readonly at: number;
  readonly onChoose: (option: Option) => void;
}

function Options({ id, options, at, onChoose }: OptionsProps) {
  return (
    <div
      id={`${id}-options`}
      role="listbox"
      aria-label="Suggestions for the filter"
      hidden={options.length === 0}
      className="absolute top-full left-0 z-30 mt-1 w-80 max-w-full overflow-hidden rounded-lg border border-line bg-panel p-1 shadow-float"
    >
      {options.map((option, i) => (
        <div
          key={option.insert}
          id={`${id}-${i}`}
          role="option"
          tabIndex={-1}
          aria-selected={i === at}
          // The press must not take the focus, which would close the list before it is heard.
          onMouseDown={(event) => {
            event.preventDefault();
            onChoose(option);
          }}
          className="flex h-7 cursor-pointer items-center gap-3 rounded-md px-2 hover:bg-panel2 aria-selected:bg-panel2"
        >
          <span className="truncate font-mono text-[12px]">{option.label}</span>
          <span className="ml-auto truncate text-[11px] text-dim">{option.hint}</span>
        </div>
      ))}
    </div>
  );
}
