import { useNow } from "../../use/useNow";
import { type Approval, leftText } from "./approvals";

/** Less than this is said in red. */
const SHORT_MS = 10 * 60_000;

/** The time that is left, ticking; nothing once it is decided. */
export function TimeLeft({ of }: { readonly of: Approval }) {
  const left = Date.parse(of.expires_at) - useNow(1_000);
  if (of.state !== "PENDING") return null;
  if (left <= 0) return <span className="text-danger">its time is over</span>;
  return (
    <span className={`whitespace-nowrap tabular-nums ${left < SHORT_MS ? "text-danger" : ""}`}>
      {leftText(left)} left
    </span>
  );
}
