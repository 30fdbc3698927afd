const TAGS = 'refs/tags/';
/** A version that is a folder of other tags, which packages seldom have. */
const VERSION_FOLDER = /\/v[1-9][0-9]{0,8}(?=\/)/g;

/** Finds tags that keep another one from being created: Git stores refs as files, so none can be above another one. */
export class TagNames {
  readonly #refs: Pick<ReadonlyMap<string, unknown>, 'has'>;
  /** Versions with tags below them, and how many those are. */
  readonly #folders: Map<string, number> = new Map();

  constructor(refs: Pick<ReadonlyMap<string, unknown>, 'has'>, earlier?: TagNames) {
    this.#refs = refs;
    if (earlier !== undefined) this.#folders = new Map(earlier.#folders);
  }

  /** Notes that a ref was added (1) or removed (-1). */
  note(ref: string, more: 1 | -1): void {
    if (!ref.startsWith(TAGS)) return;
    for (const { index, 0: version } of ref.matchAll(VERSION_FOLDER)) {
      const folder = ref.slice(0, index + version.length);
      const count = (this.#folders.get(folder) ?? 0) + more;
      if (count === 0) this.#folders.delete(folder);
      else this.#folders.set(folder, count);
    }
  }

  /**
   * The tag of this name, one above it, or, with a slash at the end, the folder of those below a version `v<N>`; undefined if it can be created. A
   * package can have many such folders: none of them is searched for its tags.
   */
  conflictWith(tag: string): string | undefined {
    for (let slash = tag.indexOf('/', TAGS.length); slash !== -1; slash = tag.indexOf('/', slash + 1))
      if (this.#refs.has(tag.slice(0, slash))) return tag.slice(0, slash);
    if (this.#refs.has(tag)) return tag;
    return this.#folders.has(tag) ? `${tag}/` : undefined;
  }
}
