import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Overview() {
  return (
    <Page title="Overview">
      <Skeleton rows={6} />
    </Page>
  );
}
