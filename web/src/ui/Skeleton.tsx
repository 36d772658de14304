const WIDTHS = ["w-2/5", "w-3/5", "w-1/2", "w-1/3", "w-2/3"];

/** The shape of what is coming. It does not shimmer: loading is short, and the page is calm. */
export function Skeleton({ rows = 3, label = "Loading" }: { readonly rows?: number; readonly label?: string }) {
  return (
    <div role="status" aria-busy="true" aria-label={label} className="flex flex-col">
      {Array.from({ length: rows }, (_, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: these bars are only their places
        <div key={i} className="flex h-row items-center gap-4 px-4">
          <span className="h-2.5 w-16 rounded-full bg-panel2" />
          <span className={`h-2.5 max-w-80 rounded-full bg-panel2 ${WIDTHS[i % WIDTHS.length]}`} />
          <span className="ml-auto h-2.5 w-12 rounded-full bg-panel2" />
        </div>
      ))}
    </div>
  );
}
