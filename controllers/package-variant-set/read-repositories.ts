import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/**
 * The repositories that the template of each set read in its last evaluation, whether they exist or not: an expression can name any. An event of a
 * repository wakes only the sets that read it.
 */
export class ReadRepositories {
  readonly #sets = new Map<string, Map<string, ObjectKey>>();
  readonly #read = new Map<string, ReadonlySet<string>>();

  /** The sets that read a repository, by its namespace and name. */
  of(repository: ObjectKey): Iterable<ObjectKey> {
    return this.#sets.get(keyText(repository))?.values() ?? [];
  }

  /**
   * Replaces what a set read. Returns the names that are new: no event about these has woken the set before.
   */
  replace(set: ObjectKey, names: ReadonlySet<string>): string[] {
    const id = keyText(set);
    const before = this.#read.get(id) ?? new Set();
    for (const name of before) if (!names.has(name)) this.#remove(set, name);
    const added = [...names].filter((name) => !before.has(name));
    for (const name of added) {
      const repository = keyText({ ...set, name });
      const sets = this.#sets.get(repository) ?? new Map<string, ObjectKey>();
      this.#sets.set(repository, sets.set(id, set));
    }
    if (names.size === 0) this.#read.delete(id);
    else this.#read.set(id, names);
    return added;
  }

  #remove(set: ObjectKey, name: string): void {
    const repository = keyText({ ...set, name });
    const sets = this.#sets.get(repository);
    sets?.delete(keyText(set));
    if (sets?.size === 0) this.#sets.delete(repository);
  }
}
