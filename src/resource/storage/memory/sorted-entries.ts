/** Keys in order, and their entries at the same places. */
interface Run<Entry> {
  readonly keys: string[];
  readonly entries: Entry[];
}

/** A run that is longer is cut in two. */
const MAX_RUN = 512;

/**
 * Entries in the order of their keys, in runs of bounded length: adding an entry moves few others, regardless of the size, and
 * ranges are copied without checking each entry.
 */
export class SortedEntries<Entry> {
  /** None of them empty. */
  readonly #runs: Run<Entry>[] = [];

  /** Adds an entry, or puts it in the place of the one with this key. */
  set(key: string, entry: Entry): void {
    const at = this.#runOf(key);
    const run = this.#runs[at];
    if (run === undefined) {
      this.#runs.push({ keys: [key], entries: [entry] });
      return;
    }
    const place = firstFrom(run.keys, key);
    if (run.keys[place] === key) {
      run.entries[place] = entry;
      return;
    }
    run.keys.splice(place, 0, key);
    run.entries.splice(place, 0, entry);
    if (run.keys.length <= MAX_RUN) return;
    // Keys are often added in order; then the first part stays full.
    const cut = place === MAX_RUN ? MAX_RUN : MAX_RUN / 2;
    this.#runs.splice(at + 1, 0, { keys: run.keys.splice(cut), entries: run.entries.splice(cut) });
  }

  /** Removes an entry if it exists. */
  delete(key: string): void {
    const at = this.#runOf(key);
    const run = this.#runs[at];
    const place = run === undefined ? -1 : firstFrom(run.keys, key);
    if (run?.keys[place] !== key) return;
    run.keys.splice(place, 1);
    run.entries.splice(place, 1);
    if (run.keys.length === 0) this.#runs.splice(at, 1);
  }

  all(): Entry[] {
    return joined(this.#runs.map(({ entries }) => entries));
  }

  /** Those whose keys are not before `start` and before `end`. */
  between(start: string, end: string): Entry[] {
    const found: Entry[][] = [];
    for (let at = this.#runOf(start); at < this.#runs.length; at += 1) {
      const { keys, entries } = this.#runs[at] as Run<Entry>;
      if ((keys[0] ?? '') >= end) break;
      found.push(entries.slice(firstFrom(keys, start), firstFrom(keys, end)));
    }
    return joined(found);
  }

  /** Those with these keys. Scans all. */
  among(wanted: ReadonlySet<string>): Entry[] {
    return this.#runs.flatMap(({ keys, entries }) => entries.filter((_, place) => wanted.has(keys[place] ?? '')));
  }

  /** The last run that begins at a key or before it; the first one if none does. */
  #runOf(key: string): number {
    let low = 0;
    let high = this.#runs.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#runs[middle]?.keys[0] ?? '') <= key) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

/** Copies whole arrays at once, which `flat` does not. */
function joined<Entry>(parts: readonly Entry[][]): Entry[] {
  return ([] as Entry[]).concat(...parts);
}

/** The place of the first key that is not less. */
function firstFrom(sorted: readonly string[], key: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? '') < key) low = middle + 1;
    else high = middle;
  }
  return low;
}
