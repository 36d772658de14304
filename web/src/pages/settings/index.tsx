import { Page } from "../../ui/Page";
import { Appearance } from "./Appearance";
import { KeysPanel } from "./KeysPanel";
import { SessionPanel } from "./SessionPanel";

export default function Settings() {
  return (
    <Page title="Settings">
      <div className="flex max-w-5xl flex-col gap-4 px-4 pb-8">
        <Appearance />
        <SessionPanel />
        <KeysPanel />
      </div>
    </Page>
  );
}
