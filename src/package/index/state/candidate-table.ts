import { inSlices } from '../../../foundation/concurrency/in-slices.ts';
import { isPlaceholder } from '../../model/revision/package-revision.ts';
import { type Candidate, chooseCandidate } from '../facts/candidate.ts';

const NONE: readonly string[] = [];

/** The candidates of a repository, the chosen one of those with one id, and the highest published revision of each package. */
export class CandidateTable {
  readonly #byRef = new Map<string, Candidate>();
  readonly #placeholders = new Map<string, Candidate>();
  /** Refs that show revisions of a package. */
  readonly #refsByPackage = new Map<string, Set<string>>();
  /**
   * Candidates with the same id; names from other tools can be spelled in two ways, and then one candidate is chosen.
   */
  readonly #byUid = new Map<string, readonly Candidate[]>();
  /** The chosen candidates, by id. */
  readonly #chosen = new Map<string, Candidate>();
  /** The highest published revision of each package. */
  readonly #newest = new Map<string, Candidate>();

  /** Copies the entries into an empty table, and yields to the event loop meanwhile. */
  async copyTo(copy: CandidateTable): Promise<void> {
    await copyEntries(this.#chosen, copy.#chosen);
    await copyEntries(this.#newest, copy.#newest);
    await copyEntries(this.#byRef, copy.#byRef);
    await copyEntries(this.#placeholders, copy.#placeholders);
    await copyEntries(this.#byUid, copy.#byUid);
    await copyEntries(this.#refsByPackage, copy.#refsByPackage, (refs) => new Set(refs));
  }

  /** Revisions by the ref that shows them. */
  get byRef(): ReadonlyMap<string, Candidate> {
    return this.#byRef;
  }

  /** Packages on the main branch, by package. */
  get placeholders(): ReadonlyMap<string, Candidate> {
    return this.#placeholders;
  }

  /** All that claim an id. */
  candidatesOf(uid: string): readonly Candidate[] {
    return this.#byUid.get(uid) ?? [];
  }

  /** The chosen candidate of an id. */
  chosen(uid: string): Candidate | undefined {
    return this.#chosen.get(uid);
  }

  newestOf(packageName: string): Candidate | undefined {
    return this.#newest.get(packageName);
  }

  *uidsOf(packageName: string): Generator<string> {
    for (const ref of this.#refsByPackage.get(packageName) ?? []) {
      const candidate = this.#byRef.get(ref);
      if (candidate !== undefined) yield candidate.uid;
    }
    const placeholder = this.#placeholders.get(packageName);
    if (placeholder !== undefined) yield placeholder.uid;
  }

  /** Sets or removes the candidate of a ref, and adds the affected ids to `touched`. */
  setAtRef(ref: string, candidate: Candidate | undefined, touched: Set<string>): void {
    this.#replace(this.#byRef.get(ref), candidate, touched);
    if (candidate === undefined) this.#byRef.delete(ref);
    else this.#byRef.set(ref, candidate);
  }

  /** The same for a package on the main branch. */
  setPlaceholder(packageName: string, candidate: Candidate | undefined, touched: Set<string>): void {
    this.#replace(this.#placeholders.get(packageName), candidate, touched);
    if (candidate === undefined) this.#placeholders.delete(packageName);
    else this.#placeholders.set(packageName, candidate);
  }

  /** One candidate takes the place of another. */
  #replace(before: Candidate | undefined, after: Candidate | undefined, touched: Set<string>): void {
    if (before !== undefined) {
      const others = (this.#byUid.get(before.uid) ?? []).filter((other) => other !== before);
      touched.add(before.uid);
      if (others.length > 0) this.#byUid.set(before.uid, others);
      else this.#byUid.delete(before.uid);
      if (!isPlaceholder(before)) dropFrom(this.#refsByPackage, before.key.package, before.ref);
    }
    if (after !== undefined) {
      const others = this.#byUid.get(after.uid);
      const candidates = others === undefined ? [after] : [...others, after];
      touched.add(after.uid);
      this.#byUid.set(after.uid, candidates);
      if (!isPlaceholder(after)) addTo(this.#refsByPackage, after.key.package, after.ref);
    }
  }

  /** Chooses the candidate that is shown under an id. `counts` is true for one that is in band. */
  choose(uid: string, counts: (candidate: Candidate) => boolean) {
    const before = this.#chosen.get(uid);
    const after = chooseCandidate(this.candidatesOf(uid), counts);
    if (after === undefined) this.#chosen.delete(uid);
    else this.#chosen.set(uid, after);
    return { before, after };
  }

  /** Notes a shown revision that is higher than those before it. Returns the ids of the rows that depend on it. */
  followNewest(uid: string): readonly string[] {
    const candidate = this.#chosen.get(uid);
    if (candidate === undefined || candidate.revision < 1) return NONE;
    const before = this.#newest.get(candidate.key.package);
    if (before === candidate || candidate.revision < (before?.revision ?? 0)) return NONE;
    return this.#setNewest(candidate.key.package, before, candidate);
  }

  /** Finds the highest revision if the previous one was removed. Returns the ids of the rows that depend on it. */
  expectNewest(packageName: string): readonly string[] {
    const before = this.#newest.get(packageName);
    if (before === undefined || this.#isShown(before)) return NONE;
    let after: Candidate | undefined;
    for (const ref of this.#refsByPackage.get(packageName) ?? []) {
      const candidate = this.#byRef.get(ref);
      if (candidate === undefined || !this.#isShown(candidate)) continue;
      if (candidate.revision > (after?.revision ?? 0)) after = candidate;
    }
    return this.#setNewest(packageName, before, after);
  }

  #isShown(candidate: Candidate): boolean {
    return this.#chosen.get(candidate.uid) === candidate;
  }

  #setNewest(packageName: string, before: Candidate | undefined, after: Candidate | undefined): string[] {
    if (after === undefined) this.#newest.delete(packageName);
    else this.#newest.set(packageName, after);
    return [before, after, this.#placeholders.get(packageName)].flatMap((candidate) => candidate?.uid ?? []);
  }
}

export function addTo(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([value]));
  else known.add(value);
}

function dropFrom(sets: Map<string, Set<string>>, key: string, value: string): void {
  const known = sets.get(key);
  known?.delete(value);
  if (known?.size === 0) sets.delete(key);
}

export async function copyEntries<Key, Value>(
  from: ReadonlyMap<Key, Value>,
  to: Map<Key, Value>,
  copyOf: (value: Value) => Value = (value) => value,
): Promise<void> {
  await inSlices(from, ([key, value]) => to.set(key, copyOf(value)));
}
