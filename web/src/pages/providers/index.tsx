import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Providers() {
  return (
    <Page title="Providers">
      <Skeleton rows={6} />
    </Page>
  );
}
