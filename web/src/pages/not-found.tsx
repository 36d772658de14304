/** What is shown where there is no page. */
export default function NotFound() {
  return (
    <main className="grid h-full place-items-center">
      <div className="text-center">
        <h1 className="text-base font-semibold">There is no such page</h1>
        <a className="text-accent underline" href="/console/">
          To the overview
        </a>
      </div>
    </main>
  );
}
