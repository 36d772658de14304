import { copyText } from "./Copy";
import { toast } from "./toast";

/** The address holds all of a page's state, so a link shows another person the same. */
export async function copyLink(): Promise<void> {
  if (await copyText(location.href)) toast("The link is in the clipboard.", { kind: "good" });
}
