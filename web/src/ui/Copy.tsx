import { Check, Copy as CopyIcon } from "lucide-react";
import { useEffect, useState } from "react";
import { IconButton } from "./IconButton";
import { toast } from "./toast";

interface CopyProps {
  readonly text: string;
  readonly label?: string;
}

export function Copy({ text, label = "Copy" }: CopyProps) {
  const [isCopied, setCopied] = useState(false);
  useEffect(() => {
    if (!isCopied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [isCopied]);
  return (
    <IconButton label={isCopied ? "Copied" : label} size="small" onClick={async () => setCopied(await copyText(text))}>
      {isCopied ? (
        <Check size={13} aria-hidden="true" className="text-good" />
      ) : (
        <CopyIcon size={13} aria-hidden="true" />
      )}
    </IconButton>
  );
}

/** Whether it is in the clipboard now; a browser may refuse, over plain http from another machine for one. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    toast("The browser refused to copy. Select the text and copy it by hand.", { kind: "bad" });
    return false;
  }
}
