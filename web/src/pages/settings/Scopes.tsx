/** What a key allows. An admin's other scopes are left out: it may everything anyway. */
export function Scopes({ scopes }: { readonly scopes: readonly string[] }) {
  const shown = scopes.includes("admin") ? ["admin"] : [...scopes].sort();
  return (
    <span className="flex flex-wrap gap-1">
      {shown.map((scope) => (
        <code
          key={scope}
          className="whitespace-nowrap rounded border border-line bg-panel2 px-1 font-mono text-[11px] leading-[18px]"
        >
          {scope}
        </code>
      ))}
    </span>
  );
}
