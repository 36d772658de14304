import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Recipe() {
  return (
    <Page title="Recipe">
      <Skeleton rows={6} />
    </Page>
  );
}
