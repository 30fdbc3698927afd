import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { DamageError } from '../../../git/errors.ts';
import type { GitRepository, Oid } from '../../../git/git-repository.ts';

/** Commits that one search keeps for the next one on the same heads. */
const MAX_KEPT = 100_000;

/** The first-parent lines that end at commits of the main branch: where publications lie. */
export class MainLines {
  readonly #git: GitRepository;
  /** Whole lines that were read, by their last commit. */
  readonly #lines = new Map<Oid, ReadonlySet<Oid>>();
  #last: { readonly heads: string; readonly search: LineSearch } | undefined;

  constructor(git: GitRepository) {
    this.#git = git;
  }

  /** Undefined while the line was not read. */
  isOn(commit: Oid, head: Oid): boolean | undefined {
    return this.#lines.get(head)?.has(commit);
  }

  /** True if the line of a commit was read. */
  has(head: Oid): boolean {
    return this.#lines.has(head);
  }

  /** Reads the whole line of a commit, once. Grows with history: only for what an operator does, such as revoking a key. */
  async read(head: Oid): Promise<void> {
    if (this.#lines.has(head)) return;
    const line = new Set<Oid>();
    for await (const oid of walk(this.#git, head)) line.add(oid);
    this.#lines.set(head, line);
  }

  /**
   * Finds the commits that are on the first-parent line of one of the heads. New publications are near its end, and the walk ends
   * when all were found. As long as the heads stay the same, the next call continues where this one ended: of many commits on no
   * line, only the first one requires a complete walk. Throws if a commit on the line cannot be read.
   */
  async find(commits: ReadonlySet<Oid>, ...heads: readonly (Oid | undefined)[]): Promise<ReadonlySet<Oid>> {
    const key = heads.join(' ');
    const search = this.#last?.heads === key ? this.#last.search : new LineSearch(this.#git, heads);
    // After an error the position is unknown.
    this.#last = undefined;
    const found = await search.find(commits);
    if (search.size <= MAX_KEPT) this.#last = { heads: key, search };
    return found;
  }
}

/** A walk along first-parent lines that continues where the last one ended. */
class LineSearch {
  readonly #seen = new Set<Oid>();
  readonly #walk: AsyncGenerator<Oid>;

  constructor(git: GitRepository, heads: readonly (Oid | undefined)[]) {
    const seen = this.#seen;
    this.#walk = (async function* () {
      for (const head of new Set(heads)) {
        if (head === undefined) continue;
        for await (const oid of walk(git, head)) {
          if (seen.has(oid)) break;
          yield oid;
        }
      }
    })();
  }

  get size(): number {
    return this.#seen.size;
  }

  async find(commits: ReadonlySet<Oid>): Promise<ReadonlySet<Oid>> {
    const missing = new Set([...commits].filter((oid) => !this.#seen.has(oid)));
    while (missing.size > 0) {
      const { value, done } = await this.#walk.next();
      if (done === true) break;
      this.#seen.add(value);
      missing.delete(value);
    }
    return new Set([...commits].filter((oid) => !missing.has(oid)));
  }
}

async function* walk(git: GitRepository, head: Oid): AsyncGenerator<Oid> {
  for (let oid: Oid | undefined = head; oid !== undefined; ) {
    yield oid;
    try {
      oid = (await git.readCommit(oid)).parents[0];
    } catch (error) {
      // A damaged repository is repaired later: until then earlier commits are unknown.
      if (error instanceof DamageError) throw error;
      // The history is cut off here, by a commit that a push made up, or by a shallow clone.
      if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return;
      throw error;
    }
  }
}
