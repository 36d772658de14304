/** An id in a few letters. Ids begin with the time, which jobs of one minute share: only the end tells them apart. */
export function shortId(id: string): string {
  return `…${id.slice(-8)}`;
}
