/**
 * The current version of an object if a client read it at `since` or later, else the version that the client gave. For changes that
 * the writer need not have seen: its write is not refused because of them.
 */
export function settledVersion(
  given: string | undefined,
  { since, current }: { readonly since: string; readonly current: string },
): string | undefined {
  if (given === undefined || !/^\d{1,30}$/.test(given) || !/^\d+$/.test(since)) return given;
  const version = BigInt(given);
  return version >= BigInt(since) && version <= BigInt(current) ? current : given;
}
