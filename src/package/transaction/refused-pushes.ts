import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/** Maximum number of stored refusals that only explain something. */
const MAX_REFUSED_PUSHES = 100;

/**
 * `PushRefused`: a rule of the remote refused the last write. `NotMerged`: the pull request of an approved revision is not merged.
 * `PullRequestFailed`: the Git host did not accept what its pull request needs. `TeamNotRead`: the members of a team cannot be read, whose groups an
 * approving review may need. `ReviewNotCounted`: an approving review does not count. `ReviewsCounted`: how many approvals its merge has. `MergeQueued`: its pull request waits in a merge queue, which removes it when its branch gets a commit: this one decides what
 * may be written.
 */
const reasons = z.enum([
  'PushRefused',
  'NotMerged',
  'PullRequestFailed',
  'TeamNotRead',
  'ReviewNotCounted',
  'ReviewsCounted',
  'MergeQueued',
]);
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

/**
 * Refusals of one mirror, in a file beside its refs: the command that was refused has ended when "sluice why" or `up` report it. Other processes
 * write the file too, which is read again when it has changed.
 */
export class RefusedPushes {
  /** Undefined where they are kept in memory: the refs of a repository that is no mirror have no place for it. */
  readonly #file: string | undefined;
  /** By reason and revision, the last one last. */
  #notes: ReadonlyMap<string, RefusalNote> = new Map();
  /** Of the file that has these notes; undefined without one. */
  #version: string | undefined;

  constructor(file: string | undefined) {
    this.#file = file;
  }

  list(): readonly RefusalNote[] {
    return [...this.#read().values()];
  }

  of(revision: string): readonly RefusalNote[] {
    const notes = this.#read();
    return reasons.options.flatMap((reason) => notes.get(keyOf({ revision, reason })) ?? []);
  }

  /**
   * Notes a refusal in the place of an earlier one of the revision with the same reason. `isCurrent` returns false for notes that do not count any
   * more.
   */
  add(note: RefusalNote, isCurrent: (note: RefusalNote) => boolean): void {
    const before = this.#read();
    const key = keyOf(note);
    if (isDeepStrictEqual(before.get(key), note)) return;
    const others = [...before.values()].filter((other) => keyOf(other) !== key);
    const notes = [...others, note];
    const informative = notes.filter(({ reason }) => reason !== 'MergeQueued').slice(-MAX_REFUSED_PUSHES);
    const queued = notes.filter(({ reason }) => reason === 'MergeQueued');
    // Only what counts is kept of them, however many there are.
    this.#write([...(note.reason === 'MergeQueued' ? queued.filter(isCurrent) : queued), ...informative]);
  }

  /** Ends the refusal of a revision with a reason, if there is one. */
  remove(note: Pick<RefusalNote, 'revision' | 'reason'>): void {
    const key = keyOf(note);
    const before = this.#read();
    if (before.has(key)) this.#write([...before.values()].filter((other) => keyOf(other) !== key));
  }

  #read(): ReadonlyMap<string, RefusalNote> {
    if (this.#file === undefined) return this.#notes;
    // Before its content, so that what is written meanwhile is read the next time.
    const version = versionOf(this.#file);
    if (version === this.#version) return this.#notes;
    this.#notes = mapOf(version === undefined ? [] : read(this.#file));
    this.#version = version;
    return this.#notes;
  }

  #write(notes: readonly RefusalNote[]): void {
    let version: string | undefined;
    if (this.#file !== undefined && notes.length === 0) rmSync(this.#file, { force: true });
    else if (this.#file !== undefined) {
      const temporary = `${this.#file}.${process.pid}`;
      writeFileSync(temporary, JSON.stringify(notes));
      // Another process may write the file right after this one.
      version = versionOf(temporary);
      renameSync(temporary, this.#file);
    }
    this.#notes = mapOf(notes);
    this.#version = version;
  }
}

function mapOf(notes: readonly RefusalNote[]): ReadonlyMap<string, RefusalNote> {
  return new Map(notes.map((note) => [keyOf(note), note]));
}

function keyOf({ revision, reason }: Pick<RefusalNote, 'revision' | 'reason'>): string {
  return `${reason} ${revision}`;
}

/** Differs after each write, which makes another file; undefined if there is none, as in most mirrors. */
function versionOf(file: string): string | undefined {
  const state = statSync(file, { bigint: true, throwIfNoEntry: false });
  return state === undefined ? undefined : `${state.ino} ${state.mtimeNs} ${state.size}`;
}

function read(file: string): readonly RefusalNote[] {
  try {
    return schema.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch (error) {
    // A damaged or removed file is replaced by the next note; what decides is noted again by each look at a proposal.
    if (error instanceof SyntaxError || error instanceof z.ZodError || isMissing(error)) return [];
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
