/** The page of the notes: what the caller keeps, and a field for more. */
export function mount(element, api) {
  const list = document.createElement("ul");
  const field = document.createElement("input");
  field.setAttribute("aria-label", "New note");
  let isGone = false;

  async function show() {
    const { items } = await api.ask("/notes");
    if (isGone) return;
    list.replaceChildren(
      ...items.map((note) => {
        const line = document.createElement("li");
        line.textContent = note.text;
        return line;
      }),
    );
  }

  field.addEventListener("change", async () => {
    await api.ask("/notes", { method: "POST", body: { text: field.value } });
    field.value = "";
    await show();
  });
  element.append(field, list);
  show();
  return () => {
    isGone = true;
    element.replaceChildren();
  };
}
