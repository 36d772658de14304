import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Jobs() {
  return (
    <Page title="Jobs">
      <Skeleton rows={6} />
    </Page>
  );
}
