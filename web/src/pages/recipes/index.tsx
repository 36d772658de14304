import { Page } from "../../ui/Page";
import { Skeleton } from "../../ui/Skeleton";

export default function Recipes() {
  return (
    <Page title="Recipes">
      <Skeleton rows={6} />
    </Page>
  );
}
