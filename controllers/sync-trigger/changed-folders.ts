import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';

/** Folders of one target that are kept; with more, every Application of the target counts as changed. */
const MAX_FOLDERS = 1000;

/**
 * The folders that commits have changed since the last sync that was started, by target: a target can have thousands of Applications, of
 * which a push concerns a few. It is a hint, which a restart loses.
 */
export class ChangedFolders {
  /** Null where they are too many, or unknown. */
  readonly #byTarget = new Map<string, Set<string> | null>();

  /** `folders` is undefined if they are unknown. */
  add(target: ObjectKey, folders: Iterable<string> | undefined): void {
    const known = this.#byTarget.get(keyText(target));
    const all = folders === undefined || known === null ? undefined : new Set([...(known ?? []), ...folders]);
    this.#byTarget.set(keyText(target), all === undefined || all.size > MAX_FOLDERS ? null : all);
  }

  /** Returns the folders and forgets them; undefined if they are not known. */
  take(target: ObjectKey): ReadonlySet<string> | undefined {
    const known = this.#byTarget.get(keyText(target));
    this.#byTarget.delete(keyText(target));
    return known == null || known.size === 0 ? undefined : known;
  }
}
