import { Button } from "../../ui/Button";
import { Input } from "../../ui/Input";
import { Select } from "../../ui/Select";
import { useNow } from "../../use/useNow";
import { FIRST, type Filter, faultsOf } from "./records";
import { EVENTS, wordOf } from "./words";

interface FiltersProps {
  readonly filter: Filter;
  readonly onChange: (part: Partial<Filter>) => void;
}

const AGES = [
  { value: "", label: "Any time" },
  { value: "1h", label: "Last hour" },
  { value: "24h", label: "Last day" },
  { value: "7d", label: "Last week" },
  { value: "30d", label: "Last 30 days" },
];

export function Filters({ filter, onChange }: FiltersProps) {
  const faults = faultsOf(filter, useNow(60_000));
  const events = EVENTS.includes(filter.event) || filter.event === "" ? EVENTS : [filter.event, ...EVENTS];
  const ages = AGES.some((one) => one.value === filter.since)
    ? AGES
    : [...AGES, { value: filter.since, label: filter.since }];
  const isFiltered = Object.values(filter).some((value) => value !== "");
  return (
    <search className="flex flex-wrap items-center gap-2 px-4 pb-3">
      <div className="w-32 sm:w-36">
        <Input
          data-filter
          aria-label="Caller"
          placeholder="Caller"
          value={filter.caller}
          onChange={(event) => onChange({ caller: event.target.value })}
        />
      </div>
      <Select
        aria-label="What was done"
        className="max-w-36 sm:max-w-56"
        value={filter.event}
        onChange={(event) => onChange({ event })}
        choices={[
          { value: "", label: "Everything" },
          ...events.map((one) => ({ value: one, label: wordOf(one).word })),
        ]}
      />
      <div className="w-72 max-w-full">
        <Input
          aria-label="Job"
          placeholder="Job id"
          aria-invalid={faults.job !== undefined || undefined}
          data-tip={faults.job}
          className="font-mono text-[12px]"
          value={filter.job}
          onChange={(event) => onChange({ job: event.target.value })}
        />
      </div>
      <Select aria-label="Since" value={filter.since} onChange={(since) => onChange({ since })} choices={ages} />
      {filter.until !== "" && (
        <Button variant="ghost" onClick={() => onChange({ until: "" })}>
          Until {filter.until} ✕
        </Button>
      )}
      {isFiltered && (
        <Button variant="ghost" onClick={() => onChange(FIRST)}>
          Clear
        </Button>
      )}
    </search>
  );
}
