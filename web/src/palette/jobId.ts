const WHOLE = /^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$/i;

/** The job that a text names, however it was copied: alone, without its dashes, or inside a link. */
export function jobIdIn(text: string): string | undefined {
  const part = text.trim().split(/[\s/?#"']+/).find((one) => WHOLE.test(one)); // biome-ignore format: one thought
  if (part === undefined) return undefined;
  const hex = part.replaceAll("-", "").toLowerCase();
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}
