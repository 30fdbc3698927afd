import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';

/** The first-parent lines that end at commits of the main branch: where publications lie. */
export class MainLines {
  readonly #git: GitRepository;
  /** Whole lines that were read, by their last commit. */
  readonly #lines = new Map<Oid, ReadonlySet<Oid>>();

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
    for await (const oid of this.#walk(head)) line.add(oid);
    this.#lines.set(head, line);
  }

  /**
   * Which of the commits lie on the line of one of the heads. New publications lie near its end, and the walk ends when all were
   * found.
   */
  async find(commits: ReadonlySet<Oid>, ...heads: readonly (Oid | undefined)[]): Promise<ReadonlySet<Oid>> {
    const found = new Set<Oid>();
    const seen = new Set<Oid>();
    for (const head of new Set(heads)) {
      if (head === undefined || found.size === commits.size) continue;
      for await (const oid of this.#walk(head)) {
        if (seen.has(oid)) break;
        seen.add(oid);
        if (commits.has(oid)) found.add(oid);
        if (found.size === commits.size) break;
      }
    }
    return found;
  }

  async *#walk(head: Oid): AsyncGenerator<Oid> {
    for (let oid: Oid | undefined = head; oid !== undefined; ) {
      yield oid;
      try {
        oid = (await this.#git.readCommit(oid)).parents[0];
      } catch (error) {
        // The history is cut off here.
        if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return;
        throw error;
      }
    }
  }
}
