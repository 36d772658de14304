/** A drum and a line that goes on from it: three steps of a graph. */
export function Mark({ size = 18 }: { readonly size?: number }) {
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 16 16" fill="none">
      <path d="M4 8C8 8 8 4 12 4M4 8c4 0 4 4 8 4" stroke="var(--line2)" strokeWidth="1.4" />
      <circle cx="4" cy="8" r="2.8" fill="#6b7bff" />
      <circle cx="12.2" cy="4" r="2.5" fill="#2fbf87" />
      <circle cx="12.2" cy="12" r="2.5" fill="#f5a524" />
    </svg>
  );
}
