import { ScrollText } from "lucide-react";
import { useState } from "react";
import { Button } from "../../ui/Button";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";
import { Table, Th } from "../../ui/Table";
import { useSearch } from "../../use/useSearch";
import { Loaded } from "../Loaded";
import { ExportButton } from "./ExportButton";
import { Filters } from "./Filters";
import { RecordRow } from "./RecordRow";
import { FIRST, useRecords } from "./records";
import { useVerify, VerifyButton, VerifyResult } from "./Verify";

export default function AuditPage() {
  const [filter, setFilter] = useSearch(FIRST);
  const [open, setOpen] = useState<number | null>(null);
  const records = useRecords(filter);
  const verifying = useVerify();
  return (
    <Page
      title="Audit"
      lead={<span className="hidden sm:inline">who did what, when</span>}
      actions={
        <>
          <ExportButton filter={filter} />
          <VerifyButton {...verifying} />
        </>
      }
    >
      <Filters filter={filter} onChange={setFilter} />
      <VerifyResult {...verifying} />
      <Loaded query={records} rows={10}>
        {({ pages }) => {
          const items = pages.flatMap((page) => page.items);
          if (items.length === 0)
            return (
              <Empty
                icon={ScrollText}
                title="No record matches"
                line="The audit has no record that matches the filter."
                action={<Button onClick={() => setFilter(FIRST)}>Show everything</Button>}
              />
            );
          return (
            <>
              <Table aria-label="Records">
                <thead>
                  <tr>
                    <Th className="relative">
                      <span className="sr-only sm:not-sr-only">No</span>
                    </Th>
                    <Th>When</Th>
                    <Th>Who</Th>
                    <Th>What</Th>
                    <Th>Job</Th>
                    <Th>Details</Th>
                    <Th>Request</Th>
                  </tr>
                </thead>
                <tbody>
                  {items.map((record) => (
                    <RecordRow
                      key={record.no}
                      record={record}
                      isOpen={open === record.no}
                      onToggle={() => setOpen(open === record.no ? null : record.no)}
                      onCaller={(caller) => setFilter({ caller }, "push")}
                    />
                  ))}
                </tbody>
              </Table>
              <div className="flex items-center justify-center gap-3 p-4 text-dim">
                {records.hasNextPage ? (
                  <Button busy={records.isFetchingNextPage} onClick={() => void records.fetchNextPage()}>
                    Show older
                  </Button>
                ) : (
                  <span className="text-[12px]">That is all: {items.length.toLocaleString("en")} records.</span>
                )}
              </div>
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}
