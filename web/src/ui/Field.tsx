import { createContext, type ReactNode, useId } from "react";

interface Labelled {
  readonly id: string;
  readonly describedBy: string | undefined;
  readonly isWrong: boolean;
}

/** What an input of this kit takes from the field around it. */
export const FieldContext = createContext<Labelled | null>(null);

interface FieldProps {
  readonly label: ReactNode;
  readonly hint?: ReactNode;
  readonly error?: string | undefined;
  readonly children: ReactNode;
  readonly className?: string;
}

/** A label, an input and its hint or error, tied together for screen readers. */
export function Field({ label, hint, error, children, className = "" }: FieldProps) {
  const id = useId();
  const note = `${id}-note`;
  const hasNote = error !== undefined || hint !== undefined;
  return (
    <FieldContext value={{ id, describedBy: hasNote ? note : undefined, isWrong: error !== undefined }}>
      <div className={`flex min-w-0 flex-col gap-1 ${className}`}>
        <label htmlFor={id} className="font-medium text-[12px]">
          {label}
        </label>
        {children}
        {hasNote && (
          <p id={note} className={`text-[12px] ${error === undefined ? "text-dim" : "text-danger"}`}>
            {error ?? hint}
          </p>
        )}
      </div>
    </FieldContext>
  );
}
