import { Download } from "lucide-react";
import { useState } from "react";
import { problemOf } from "../../api/client";
import { Button } from "../../ui/Button";
import { toast } from "../../ui/toast";
import { download, exportRecords } from "./exporting";
import type { Filter } from "./records";

/** Downloads the records that match the filter. */
export function ExportButton({ filter }: { readonly filter: Filter }) {
  const [isBusy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    try {
      const now = Date.now();
      const { lines, isCapped } = await exportRecords(filter, now);
      download(`audit-${new Date(now).toISOString().slice(0, 19).replaceAll(":", "")}.ndjson`, lines);
      const count = lines.length.toLocaleString("en");
      toast(isCapped ? `The newest ${count} records; set the time for older ones.` : `${count} records`, {
        kind: "good",
      });
    } catch (error) {
      toast(problemOf(error).message, { kind: "bad" });
    } finally {
      setBusy(false);
    }
  };
  return (
    <Button busy={isBusy} icon={<Download size={13} aria-hidden="true" />} onClick={() => void run()}>
      Export
    </Button>
  );
}
