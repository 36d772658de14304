import { missing } from "../api/schemas";
import { Input } from "../ui/Input";
import { Select } from "../ui/Select";
import { TextArea } from "../ui/TextArea";
import type { Spec } from "./spec";
import { choiceText } from "./words";

interface ControlProps {
  readonly spec: Spec;
  readonly text: string;
  readonly isRequired: boolean;
  readonly onText: (text: string) => void;
}

const LONG_TEXT = 80;
const ROWS_MAX = 16;

/** What one types or chooses in. */
export function Control({ spec, text, isRequired, onText }: ControlProps) {
  const type = (event: React.ChangeEvent<HTMLInputElement | HTMLTextAreaElement>): void => onText(event.target.value);
  const empty = emptyText(spec);
  // Not `required`: the browser would say it in a bubble of its own, and not at the field.
  const needed = isRequired || undefined;
  switch (spec.kind) {
    case "boolean":
    case "choice": {
      const options = spec.kind === "boolean" ? [true, false] : spec.options;
      const isFree = !isRequired || text === "" || spec.isNullable;
      return (
        <Select value={text} onChange={onText} aria-required={needed}>
          {isFree && <option value="">{empty === "" ? "Choose…" : empty}</option>}
          {options.map((option) => (
            <option key={JSON.stringify(option)} value={JSON.stringify(option)}>
              {choiceText(option)}
            </option>
          ))}
        </Select>
      );
    }
    case "number":
      return (
        <Input
          inputMode={spec.isInteger ? "numeric" : "decimal"}
          autoComplete="off"
          value={text}
          onChange={type}
          placeholder={empty}
          aria-required={needed}
          className="tabular-nums"
        />
      );
    case "text":
      if (text.length < LONG_TEXT && !text.includes("\n"))
        return (
          <Input
            type={spec.format === "password" ? "password" : "text"}
            autoComplete="off"
            spellCheck={false}
            value={text}
            onChange={type}
            placeholder={empty}
            aria-required={needed}
          />
        );
      return <TextArea rows={4} spellCheck={false} value={text} onChange={type} aria-required={needed} />;
    case "json":
    case "list":
    case "object":
      return (
        <TextArea
          rows={Math.min(ROWS_MAX, Math.max(3, text.split("\n").length))}
          spellCheck={false}
          value={text}
          onChange={type}
          placeholder={empty === "" ? "JSON" : empty}
          aria-required={needed}
          className="resize-y font-mono text-[12px] leading-[1.55]"
        />
      );
    default:
      return missing(spec);
  }
}

/** What an empty field stands for. */
function emptyText(spec: Spec): string {
  if (spec.isNullable) return "none";
  return spec.fallback === undefined ? "" : `${choiceText(spec.fallback)} (default)`;
}
