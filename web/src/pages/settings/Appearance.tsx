import { MonitorCog, Moon, Rows3, Rows4, Sun } from "lucide-react";
import { Panel } from "../../ui/Panel";
import { Segmented } from "../../ui/Segmented";
import { Select } from "../../ui/Select";
import { absolute } from "../../ui/time";
import { useNow } from "../../use/useNow";
import { usePreference } from "../../use/usePreference";
import { Setting } from "./Setting";

export function Appearance() {
  const [theme, setTheme] = usePreference("theme");
  const [density, setDensity] = usePreference("density");
  return (
    <Panel title="Appearance" lead="Stored in this browser">
      <Setting name="Theme">
        <Segmented
          label="Theme"
          value={theme}
          onChange={setTheme}
          choices={[
            { value: "system", label: "System", icon: <MonitorCog size={13} aria-hidden="true" /> },
            { value: "light", label: "Light", icon: <Sun size={13} aria-hidden="true" /> },
            { value: "dark", label: "Dark", icon: <Moon size={13} aria-hidden="true" /> },
          ]}
        />
      </Setting>
      <Setting name="Density" line="How high the rows of lists and tables are">
        <Segmented
          label="Density"
          value={density}
          onChange={setDensity}
          choices={[
            { value: "cosy", label: "Roomy", icon: <Rows3 size={13} aria-hidden="true" /> },
            { value: "compact", label: "Compact", icon: <Rows4 size={13} aria-hidden="true" /> },
          ]}
        />
      </Setting>
      <TimeZone />
    </Panel>
  );
}

function TimeZone() {
  const [zone, setZone] = usePreference("zone");
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = Intl.supportedValuesOf("timeZone").filter((one) => one !== "UTC");
  return (
    <Setting name="Time zone" line={<Clock zone={zone} />}>
      <Select aria-label="Time zone" value={zone} onChange={setZone} className="w-64 max-w-full">
        <option value="local">This computer's ({here})</option>
        <option value="UTC">UTC</option>
        {zones.map((one) => (
          <option key={one} value={one}>
            {one.replaceAll("_", " ")}
          </option>
        ))}
      </Select>
    </Setting>
  );
}

function Clock({ zone }: { readonly zone: string }) {
  return <span className="tabular-nums">It is {absolute(useNow(), zone).replace(/\.\d{3}/, "")}</span>;
}
