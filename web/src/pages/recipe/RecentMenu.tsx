import type { Json } from "../../form/spec";
import { inputsText } from "../../form/words";
import { Menu } from "../../ui/Menu";
import { relative } from "../../ui/time";
import { useRecentInputs } from "./recipe";

interface RecentMenuProps {
  readonly name: string;
  readonly onStart: (inputs: Json) => void;
}

/** What was submitted before, to start from. Where there is nothing, or it cannot be had, the form does without. */
export function RecentMenu({ name, onStart }: RecentMenuProps) {
  const recent = useRecentInputs(name);
  if (recent.data === undefined || recent.data.length === 0) return null;
  return (
    <Menu
      label="Start from"
      variant="ghost"
      items={recent.data.map((one, i) => ({
        // The number keeps two apart that differ only where the text is cut.
        label: `${i + 1}. ${inputsText(one.inputs)}`,
        hint: relative(Date.parse(one.at), Date.now()),
        onSelect: () => onStart(one.inputs as Json),
      }))}
    />
  );
}
