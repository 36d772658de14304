import { Compass } from "lucide-react";
import { Link } from "wouter";
import { Empty } from "../../ui/Empty";
import { Page } from "../../ui/Page";

/** What is shown where there is no page. */
export default function NotFound() {
  return (
    <Page title="Not found">
      <Empty
        icon={Compass}
        title="There is no such page"
        line="The address may be old or mistyped."
        action={
          <Link href="/" className="text-accent underline">
            To the overview
          </Link>
        }
      />
    </Page>
  );
}
