/** A state of a repository that a process has shown to clients. */
export interface ShownState {
  /** Rises with each state of the process; a state contains those before it. */
  readonly number: number;
  /** Digest of the refs that it shows, comparable for the same layout. */
  readonly refs: string;
}

/** The last state of each process that has shown any; the processes are named by their epochs, which rise. */
export type ShownStates = Readonly<Record<string, ShownState>>;

/** Numbers of the states that a mirror contains, by process. */
export type ContainedStates = Readonly<Record<string, number>>;

/** Processes that are remembered for one repository: those of the last terms. Each term adds one, and has some 60 bytes. */
const MAX_WRITERS = 64;

/** The later state of each process. */
export function joinStates(one: ShownStates, other: ShownStates): ShownStates {
  const all = new Map(Object.entries(one));
  for (const [writer, state] of Object.entries(other)) {
    const present = all.get(writer);
    if (present === undefined || state.number > present.number) all.set(writer, state);
  }
  const latest = [...all].sort(([a], [b]) => Number(b) - Number(a)).slice(0, MAX_WRITERS);
  return Object.fromEntries(latest.sort(([a], [b]) => Number(a) - Number(b)));
}

/** True if the first has all states of the second. */
export function hasStates(present: ShownStates, wanted: ShownStates): boolean {
  return Object.entries(wanted).every(([writer, { number }]) => (present[writer]?.number ?? 0) >= number);
}

/** True if a mirror that has these refs contains all states: by their numbers, or because a state shows the same refs. */
export function containsStates(contained: ContainedStates, refs: string, wanted: ShownStates): boolean {
  return Object.entries(wanted).every(
    ([writer, state]) => (contained[writer] ?? 0) >= state.number || state.refs === refs,
  );
}

/** True if a process need not record that it shows these refs: they are its last state, or it has none and they are that of the process before it. */
export function isRecorded(states: ShownStates, refs: string, own: string | undefined): boolean {
  const state = own === undefined ? undefined : states[own];
  if (state !== undefined) return state.refs === refs;
  const [last] = Object.keys(states).sort((a, b) => Number(b) - Number(a));
  return last !== undefined && states[last]?.refs === refs;
}
