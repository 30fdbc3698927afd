/**
 * Which states of a repository clients have been shown, as a vector clock: for each process that has shown any, the number of its last one. A
 * state contains those before it, whichever process showed them.
 */
export type ShownStates = Readonly<Record<string, number>>;

/** Processes that are remembered for one repository: those of the last terms. The names are epochs, which rise. */
const MAX_WRITERS = 8;

/** The states of both. */
export function joinStates(one: ShownStates, other: ShownStates): ShownStates {
  const all = new Map(Object.entries(one));
  for (const [writer, number] of Object.entries(other)) all.set(writer, Math.max(number, all.get(writer) ?? 0));
  const latest = [...all].sort(([a], [b]) => Number(b) - Number(a)).slice(0, MAX_WRITERS);
  return Object.fromEntries(latest.sort(([a], [b]) => Number(a) - Number(b)));
}

/** True if what contains `present` contains `wanted`. */
export function containsStates(present: ShownStates, wanted: ShownStates): boolean {
  return Object.entries(wanted).every(([writer, number]) => (present[writer] ?? 0) >= number);
}
