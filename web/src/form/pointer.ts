/** JSON pointers, as the server uses them to say where something is wrong. */

export function down(pointer: string, name: string | number): string {
  return `${pointer}/${String(name).replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

export function partsOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The pointers of everything that it is inside of, itself first. */
export function upwards(pointer: string): string[] {
  const found = [pointer];
  for (let at = pointer; at !== ""; ) {
    at = at.slice(0, at.lastIndexOf("/"));
    found.push(at);
  }
  return found;
}
