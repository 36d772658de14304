import { lazy, type ReactNode, Suspense } from "react";

export interface DialogProps {
  readonly title: string;
  readonly lead?: ReactNode;
  readonly onClose: () => void;
  readonly children: ReactNode;
  readonly footer?: ReactNode;
  readonly size?: "small" | "medium" | "large";
}

// The first page shows no dialog, so its focus trap is not part of the first load.
const Frame = lazy(() => import("./DialogFrame"));

/** A dialog is open while it is rendered: `{isAsking && <Dialog onClose={…}>…</Dialog>}`. */
export function Dialog(props: DialogProps) {
  return (
    <Suspense>
      <Frame {...props} />
    </Suspense>
  );
}
