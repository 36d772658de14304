import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Workers() {
  return (
    <Page title="Workers">
      <Skeleton rows={6} />
    </Page>
  );
}
