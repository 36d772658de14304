import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Audit() {
  return (
    <Page title="Audit">
      <Skeleton rows={6} />
    </Page>
  );
}
