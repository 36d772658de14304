import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function DeadLetters() {
  return (
    <Page title="Dead letters">
      <Skeleton rows={6} />
    </Page>
  );
}
