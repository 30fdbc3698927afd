import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/** Maximum number of stored refusals. */
const MAX_REFUSED_PUSHES = 100;

/**
 * `PushRefused`: a rule of the remote refused the last write. `NotMerged`: the pull request of an approved revision is not merged.
 * `PullRequestFailed`: the Git host did not accept what its pull request needs. `TeamNotRead`: the members of a team cannot be read, whose groups an
 * approving review may need. `MergeQueued`: its pull request waits in a merge queue, which removes it when its branch gets a commit.
 */
const reasons = z.enum(['PushRefused', 'NotMerged', 'PullRequestFailed', 'TeamNotRead', 'MergeQueued']);
export type RefusalReason = z.infer<typeof reasons>;

const schema = z.array(
  z.strictObject({
    revision: z.string(),
    commit: z.string(),
    message: z.string(),
    /** What ends it, where that depends on the case. */
    next: z.string().exactOptional(),
    // Absent in files of earlier versions.
    reason: reasons.default('PushRefused'),
  }),
);

/** What the Git host refused or does not do of a revision, while the revision was at a commit. */
export type RefusalNote = z.infer<typeof schema>[number];

/** Refusals of one mirror, in a file beside its refs: the command that was refused has ended when "sluice why" or `up` report it. */
export class RefusedPushes {
  /** Undefined where they are kept in memory: the refs of a repository that is no mirror have no place for it. */
  readonly #file: string | undefined;
  #inMemory: readonly RefusalNote[] = [];

  constructor(file: string | undefined) {
    this.#file = file;
  }

  list(): readonly RefusalNote[] {
    if (this.#file === undefined) return this.#inMemory;
    // Most mirrors never have one.
    if (!existsSync(this.#file)) return [];
    try {
      return schema.parse(JSON.parse(readFileSync(this.#file, 'utf8')));
    } catch (error) {
      // The notes are only informative; a damaged or removed file is replaced by the next note.
      if (error instanceof SyntaxError || error instanceof z.ZodError || isMissing(error)) return [];
      throw error;
    }
  }

  /** Notes a refusal in the place of an earlier one of the revision with the same reason. */
  add(note: RefusalNote): void {
    const notes = this.list();
    if (notes.some((other) => isDeepStrictEqual(other, note))) return;
    this.#write([...notes.filter((other) => !isSame(other, note)), note]);
  }

  /** Ends the refusal of a revision with a reason, if there is one. */
  remove(note: Pick<RefusalNote, 'revision' | 'reason'>): void {
    const notes = this.list();
    if (notes.some((other) => isSame(other, note))) this.#write(notes.filter((other) => !isSame(other, note)));
  }

  #write(notes: readonly RefusalNote[]): void {
    if (this.#file === undefined) {
      this.#inMemory = notes.slice(-MAX_REFUSED_PUSHES);
      return;
    }
    if (notes.length === 0) {
      rmSync(this.#file, { force: true });
      return;
    }
    const temporary = `${this.#file}.${process.pid}`;
    writeFileSync(temporary, JSON.stringify(notes.slice(-MAX_REFUSED_PUSHES)));
    renameSync(temporary, this.#file);
  }
}

function isSame(
  one: Pick<RefusalNote, 'revision' | 'reason'>,
  other: Pick<RefusalNote, 'revision' | 'reason'>,
): boolean {
  return one.revision === other.revision && one.reason === other.reason;
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
