import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Job() {
  return (
    <Page title="Job">
      <Skeleton rows={6} />
    </Page>
  );
}
