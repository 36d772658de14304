import { X } from "lucide-react";
import { Dialog as Radix } from "radix-ui";
import { type ReactNode, useRef } from "react";
import { useOverflow } from "../use/useOverflow";
import type { DialogProps } from "./Dialog";
import { IconButton } from "./IconButton";

const WIDTH = { small: "max-w-md", medium: "max-w-xl", large: "max-w-4xl" };

export default function DialogFrame({ title, lead, onClose, children, footer, size = "small" }: DialogProps) {
  return (
    <Radix.Root open onOpenChange={(isOpen) => isOpen || onClose()}>
      <Radix.Portal>
        <Radix.Overlay className="fixed inset-0 z-40 bg-shade" />
        <Radix.Content
          onOpenAutoFocus={focusFirst}
          {...(lead === undefined && { "aria-describedby": undefined })}
          className={`fixed top-[12vh] left-1/2 z-50 flex max-h-[80vh] w-[calc(100vw-24px)] ${WIDTH[size]} -translate-x-1/2 flex-col overflow-hidden rounded-xl border border-line bg-panel shadow-float outline-none`}
        >
          <header className="flex items-start gap-3 px-5 pt-4 pb-3">
            <div className="min-w-0 flex-1">
              <Radix.Title className="font-semibold text-[15px]">{title}</Radix.Title>
              {lead !== undefined && <Radix.Description className="mt-1 text-dim">{lead}</Radix.Description>}
            </div>
            <IconButton label="Close" hint="Esc" onClick={onClose} className="-mt-1 -mr-2">
              <X size={15} aria-hidden="true" />
            </IconButton>
          </header>
          <Body>{children}</Body>
          {footer !== undefined && (
            <footer className="flex flex-wrap items-center justify-end gap-2 border-line border-t bg-panel2/50 px-5 py-3">
              {footer}
            </footer>
          )}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}

function Body({ children }: { readonly children: ReactNode }) {
  const frame = useRef<HTMLElement>(null);
  const doesScroll = useOverflow(frame);
  return (
    <section
      ref={frame}
      {...(doesScroll && { tabIndex: 0, "aria-label": "Details" })}
      className="relative min-h-0 overflow-y-auto px-5 pb-4 focus-visible:outline-offset-[-2px]"
    >
      {children}
    </section>
  );
}

/** The first thing to write in, or the dialog itself: a close button is nothing to begin with. */
function focusFirst(event: Event): void {
  event.preventDefault();
  const frame = event.currentTarget;
  if (!(frame instanceof HTMLElement)) return;
  const field = frame.querySelector<HTMLElement>("[data-autofocus], input:not([disabled]), textarea, select");
  (field ?? frame).focus();
}
