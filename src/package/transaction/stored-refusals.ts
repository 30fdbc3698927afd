import { appendFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';

/** Maximum number of stored refusals that only explain something. */
const MAX_INFORMATIVE = 100;
/** Minimum number of changes that are appended to a file before it is rewritten. */
const MIN_APPENDED = 100;

/**
 * `PushRefused`: a rule of the remote refused the last write. `NotMerged`: the pull request of an approved revision is not merged.
 * `PullRequestFailed`: the Git host did not accept what its pull request needs; `ReviewerRefused`, `ReplyFailed`: or a reviewer, or a comment of it.
 * `PullRequestClosed`, `MergedOutside`, `MergeWaits`, `MergeNotPublished`: its pull request has ended, but the proposal has not. `TeamNotRead`: the
 * members of a team cannot be read, whose groups an approving review may need. `ReviewNotCounted`: an approving review does not count.
 * `ReviewsCounted`: how many approvals its merge has. `ApprovedByReview`: reviews approve it, and it waits for something else.
 * `MergeQueued`: its pull request waits in a merge queue, which removes it when its branch gets a commit: this one decides what may be written.
 */
const reasons = z.enum([
  'PushRefused',
  'NotMerged',
  'PullRequestFailed',
  'ReviewerRefused',
  'ReplyFailed',
  'PullRequestClosed',
  'MergedOutside',
  'MergeWaits',
  'MergeNotPublished',
  'TeamNotRead',
  'ReviewNotCounted',
  'ReviewsCounted',
  'ApprovedByReview',
  'MergeQueued',
]);
export type RefusalReason = z.infer<typeof reasons>;

const noteSchema = z.strictObject({
  revision: z.string(),
  commit: z.string(),
  message: z.string(),
  /** What ends it, where that depends on the case. */
  next: z.string().exactOptional(),
  // Absent in files of earlier versions.
  reason: reasons.default('PushRefused'),
});
const endSchema = z.strictObject({ revision: z.string(), reason: reasons, ended: z.literal(true) });
const changeSchema = z.union([noteSchema, endSchema]);
type Change = z.infer<typeof changeSchema>;

/** What the Git host refused or does not do of a revision, while the revision was at a commit. */
export type RefusalNote = z.infer<typeof noteSchema>;

/**
 * Refusals of one mirror, in a file beside its refs: the command that was refused has ended when "sluice why" or `up` report it. Other processes
 * write the file too, which is read again when they have changed it.
 *
 * Each line of the file is a change, so that the cost of one does not depend on the number of notes. Once there are more changes than notes, the file
 * is rewritten without what ended.
 */
export class StoredRefusals {
  /** Undefined where they are kept in memory: the refs of a repository that is no mirror have no place for it. */
  readonly #file: string | undefined;
  readonly #isCurrent: (note: RefusalNote) => boolean;
  #notes = new Notes();
  /** Of the file that has these notes; undefined without one. */
  #version: FileVersion | undefined;
  /** The number of changes until the next rewriting. None in a file that this process did not write: it may end with half a line. */
  #appendable = 0;

  /** `isCurrent` returns false for notes that do not count any more. */
  constructor(file: string | undefined, isCurrent: (note: RefusalNote) => boolean) {
    this.#file = file;
    this.#isCurrent = isCurrent;
  }

  list(): readonly RefusalNote[] {
    return this.#read().all();
  }

  of(revision: string): readonly RefusalNote[] {
    const notes = this.#read();
    return reasons.options.flatMap((reason) => notes.get({ revision, reason }) ?? []);
  }

  /** Notes a refusal in the place of an earlier one of the revision with the same reason. */
  add(note: RefusalNote): void {
    if (!isDeepStrictEqual(this.#read().get(note), note)) this.#apply(note);
  }

  /** Ends the refusal of a revision with a reason, if there is one. */
  remove({ revision, reason }: Pick<RefusalNote, 'revision' | 'reason'>): void {
    if (this.#read().get({ revision, reason }) !== undefined) this.#apply({ revision, reason, ended: true });
  }

  #read(): Notes {
    if (this.#file === undefined) return this.#notes;
    // Before its content, so that what is written meanwhile is read the next time.
    const version = versionOf(this.#file);
    if (isDeepStrictEqual(version, this.#version)) return this.#notes;
    this.#notes = new Notes(version === undefined ? [] : read(this.#file));
    this.#version = version;
    this.#appendable = 0;
    return this.#notes;
  }

  #apply(change: Change): void {
    this.#notes.apply(change);
    this.#appendable -= 1;
    try {
      if (this.#appendable < 0 || this.#notes.size === 0) this.#rewrite();
      else if (this.#file !== undefined) this.#append(this.#file, `${JSON.stringify(change)}\n`);
    } catch (error) {
      // The file does not have the change.
      this.#version = UNKNOWN;
      throw error;
    }
  }

  #append(file: string, line: string): void {
    const before = this.#version;
    appendFileSync(file, line);
    const after = versionOf(file);
    const isOnlyChange =
      after?.inode === before?.inode && after?.size === (before?.size ?? 0) + Buffer.byteLength(line);
    // Otherwise, another process has written the file as well.
    this.#version = isOnlyChange ? after : UNKNOWN;
  }

  #rewrite(): void {
    // Only what counts is kept of those that no number bounds.
    const notes = this.#notes.all().filter((note) => note.reason !== 'MergeQueued' || this.#isCurrent(note));
    let version: FileVersion | undefined;
    if (this.#file !== undefined && notes.length === 0) rmSync(this.#file, { force: true });
    else if (this.#file !== undefined) {
      const temporary = `${this.#file}.${process.pid}`;
      writeFileSync(temporary, notes.map((note) => `${JSON.stringify(note)}\n`).join(''));
      // Another process may write the file right after this one.
      version = versionOf(temporary);
      renameSync(temporary, this.#file);
    }
    this.#notes = new Notes(notes);
    this.#version = version;
    // A file that does not exist has to be written.
    this.#appendable = notes.length === 0 ? 0 : Math.max(notes.length, MIN_APPENDED);
  }
}

/** By reason and revision, the last one last: those that decide, and the others, whose number is bounded. */
class Notes {
  readonly #queued = new Map<string, RefusalNote>();
  readonly #informative = new Map<string, RefusalNote>();

  constructor(changes: readonly Change[] = []) {
    for (const change of changes) this.apply(change);
  }

  get size(): number {
    return this.#queued.size + this.#informative.size;
  }

  all(): RefusalNote[] {
    return [...this.#queued.values(), ...this.#informative.values()];
  }

  get(note: Pick<RefusalNote, 'revision' | 'reason'>): RefusalNote | undefined {
    return this.#mapOf(note).get(keyOf(note));
  }

  apply(change: Change): void {
    const notes = this.#mapOf(change);
    notes.delete(keyOf(change));
    if (!('ended' in change)) notes.set(keyOf(change), change);
    const [oldest] = this.#informative.keys();
    if (oldest !== undefined && this.#informative.size > MAX_INFORMATIVE) this.#informative.delete(oldest);
  }

  #mapOf({ reason }: Pick<RefusalNote, 'reason'>): Map<string, RefusalNote> {
    return reason === 'MergeQueued' ? this.#queued : this.#informative;
  }
}

function keyOf({ revision, reason }: Pick<RefusalNote, 'revision' | 'reason'>): string {
  return `${reason} ${revision}`;
}

/** Differs after each write of another process. */
interface FileVersion {
  readonly inode: bigint;
  readonly modifiedNs: bigint;
  readonly size: number;
}

/** Of no file. */
const UNKNOWN: FileVersion = { inode: 0n, modifiedNs: 0n, size: -1 };

/** Undefined if there is no file, as in most mirrors. */
function versionOf(file: string): FileVersion | undefined {
  const state = statSync(file, { bigint: true, throwIfNoEntry: false });
  return state === undefined ? undefined : { inode: state.ino, modifiedNs: state.mtimeNs, size: Number(state.size) };
}

function read(file: string): readonly Change[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  // Earlier versions wrote one array.
  if (text.startsWith('[')) return parse(z.array(noteSchema), text) ?? [];
  return text.split('\n').flatMap((line) => (line === '' ? [] : (parse(changeSchema, line) ?? [])));
}

/** Undefined if it is damaged: the next note replaces that; what decides is noted again by each look at a proposal. */
function parse<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT';
}
