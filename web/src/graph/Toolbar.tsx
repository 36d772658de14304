import {
  Check,
  CircleX,
  Copy,
  EyeOff,
  Locate,
  type LucideIcon,
  Map as MapIcon,
  Maximize,
  RefreshCcwDot,
  Route,
  Search,
} from "lucide-react";
import { useState } from "react";
import type { Filter } from "./filter";
import type { Command } from "./keys";

export interface Toggles {
  readonly filter: Filter;
  readonly isFollowing: boolean;
  readonly isFinding: boolean;
  readonly hasMinimap: boolean;
  readonly hasCritical: boolean;
}

interface ToolbarProps {
  readonly toggles: Toggles;
  readonly isPlan: boolean;
  readonly onCommand: (command: Command) => void;
  readonly onCopy: () => Promise<void>;
}

export function Toolbar({ toggles, isPlan, onCommand, onCopy }: ToolbarProps) {
  const tool = (command: Command, key: string, label: string, Icon: LucideIcon, isOn?: boolean) => (
    <Tool key={command} label={label} hint={key} Icon={Icon} isOn={isOn} onPress={() => onCommand(command)} />
  );
  return (
    <div
      data-panel
      role="toolbar"
      aria-label="Graph"
      className="absolute top-2 left-2 flex gap-0.5 rounded-lg border border-line bg-panel p-0.5"
    >
      {tool("fit", "f", "Fit", Maximize)}
      {!isPlan && tool("follow", "l", "Follow running steps", Locate, toggles.isFollowing)}
      {!isPlan && tool("failed", "e", "Only failed", CircleX, toggles.filter === "failed")}
      {!isPlan && tool("unfinished", "h", "Hide finished", EyeOff, toggles.filter === "unfinished")}
      {tool("find", "/", "Find a step", Search, toggles.isFinding)}
      {tool("direction", "t", "Turn", RefreshCcwDot)}
      {!isPlan && tool("critical", "c", "Critical path", Route, toggles.hasCritical)}
      {tool("minimap", "m", "Minimap", MapIcon, toggles.hasMinimap)}
      <CopyTool onCopy={onCopy} />
    </div>
  );
}

interface ToolProps {
  readonly label: string;
  readonly hint?: string;
  readonly Icon: LucideIcon;
  readonly isOn?: boolean | undefined;
  readonly onPress: () => void;
}

function Tool({ label, hint, Icon, isOn, onPress }: ToolProps) {
  return (
    <button
      type="button"
      aria-label={label}
      aria-pressed={isOn}
      aria-keyshortcuts={hint}
      title={hint === undefined ? label : `${label} (${hint})`}
      onClick={onPress}
      className={`grid size-7 cursor-pointer place-items-center rounded-md hover:bg-panel2 ${isOn ? "bg-panel2 text-accent" : "text-dim hover:text-fg"}`}
    >
      <Icon size={15} aria-hidden="true" />
    </button>
  );
}

function CopyTool({ onCopy }: Pick<ToolbarProps, "onCopy">) {
  const [isCopied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await onCopy();
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return <Tool label={isCopied ? "Copied" : "Copy as Mermaid"} Icon={isCopied ? Check : Copy} onPress={copy} />;
}
