import {
  appendFileSync,
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { errnoOf, isMissing } from '../../foundation/files/file-system.ts';

/** Maximum number of stored refusals that only explain something. */
const MAX_INFORMATIVE = 100;
/** Minimum number of changes that are appended to a file before it is rewritten. */
const MIN_APPENDED = 100;
/** A rewriting takes milliseconds: after so many, its process was killed. */
const MAX_REWRITE_MS = 60_000;

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
  reason: reasons,
});
const endSchema = z.strictObject({ revision: z.string(), reason: reasons, ended: z.literal(true) });
const changeSchema = z.union([noteSchema, endSchema]);
type Change = z.infer<typeof changeSchema>;

/** What the Git host refused or does not do of a revision, while the revision was at a commit. */
export type RefusalNote = z.infer<typeof noteSchema>;

/**
 * Refusals of one registration, in a file beside the refs of its mirror: the command that was refused has ended when "sluice why" or `up` report
 * it. Other processes write the file too, which is read again when they have changed it.
 *
 * Each line of the file is a change, so that the cost of one does not depend on the number of notes. Once there are more changes than notes, the file
 * is rewritten without what ended. Writers take no lock: one that has added a line to a file that was replaced meanwhile adds it again, and one that
 * replaces the file adds the lines that others have added since it read them.
 */
export class StoredRefusals {
  /** Undefined where they are kept in memory: the refs of a repository that is no mirror have no place for it. */
  readonly #file: string | undefined;
  readonly #isCurrent: (note: RefusalNote) => boolean;
  #notes = new Notes();
  /** Of the file that has these notes; undefined without one. */
  #version: FileVersion | undefined;
  /** The number of changes until the next rewriting. */
  #appendable = MIN_APPENDED;

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
    const changes = version === undefined ? [] : read(this.#file);
    this.#keep(changes);
    this.#version = version;
    this.#appendable -= changes.length - this.#notes.size;
    return this.#notes;
  }

  #apply(change: Change): void {
    this.#notes.apply(change);
    this.#appendable -= 1;
    const mustRewrite = this.#appendable < 0 || this.#notes.size === 0;
    if (this.#file === undefined) {
      if (mustRewrite) this.#keep(this.#counting());
      return;
    }
    try {
      this.#append(this.#file, lineOf(change));
      if (mustRewrite) this.#rewrite(this.#file);
    } catch (error) {
      // The file may not have the change.
      this.#version = UNKNOWN;
      throw error;
    }
  }

  #append(file: string, lines: string): void {
    const before = this.#version;
    append(file, lines);
    const after = versionOf(file);
    const isOnlyChange =
      (before === undefined || after?.inode === before.inode) &&
      after?.size === (before?.size ?? 0) + Buffer.byteLength(lines);
    // Otherwise, another process has written the file as well.
    this.#version = isOnlyChange ? after : UNKNOWN;
  }

  #rewrite(file: string): void {
    const temporary = `${file}.new`;
    const created = createAlone(temporary);
    // Another process rewrites it.
    if (created === undefined) return;
    // If this process stands still for long, another one takes it for one that was killed.
    const { ino } = fstatSync(created, { bigint: true });
    const isOwn = () => versionOf(temporary)?.inode === ino;
    let old: number | undefined;
    try {
      this.#read();
      const read = this.#version?.size ?? 0;
      const notes = this.#counting();
      if (!isOwn()) return;
      old = openSync(file, 'r');
      writeFileSync(created, notes.map(lineOf).join(''));
      const early = rest(old, read);
      if (early.length > 0) writeFileSync(created, `\n${early.toString()}`);
      const isEmpty = notes.length === 0 && early.length === 0;
      const version = versionOf(temporary);
      if (version?.inode !== ino) return;
      if (isEmpty) rmSync(file, { force: true });
      else renameSync(temporary, file);
      this.#keep(notes);
      this.#version = isEmpty ? undefined : early.length === 0 ? version : UNKNOWN;
      const late = rest(old, read + early.length);
      if (late.length === 0) return;
      append(file, `\n${late.toString()}`);
      this.#version = UNKNOWN;
    } finally {
      if (old !== undefined) closeSync(old);
      // Once it has its new name, the one that is there is of another process.
      if (isOwn()) rmSync(temporary, { force: true });
      closeSync(created);
    }
  }

  /** Only what counts is kept of those that no number bounds. */
  #counting(): readonly RefusalNote[] {
    return this.#notes.all().filter((note) => note.reason !== 'MergeQueued' || this.#isCurrent(note));
  }

  #keep(changes: readonly Change[]): void {
    this.#notes = new Notes(changes);
    this.#appendable = Math.max(this.#notes.size, MIN_APPENDED);
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

/** A line begins with its separator: the last one of a process that was killed may lack its end. */
function lineOf(change: Change): string {
  return `\n${JSON.stringify(change)}`;
}

/** Adds lines at the end of a file, again if another process has replaced it meanwhile: that may have read it before. */
function append(file: string, lines: string): void {
  for (let isThere = false; !isThere; ) {
    const descriptor = openSync(file, 'a');
    try {
      appendFileSync(descriptor, lines);
      isThere = versionOf(file)?.inode === fstatSync(descriptor, { bigint: true }).ino;
    } finally {
      closeSync(descriptor);
    }
  }
}

/** Creates the file that replaces another one; undefined while another process has it, unless that was killed. */
function createAlone(file: string): number | undefined {
  const present = statSync(file, { throwIfNoEntry: false });
  if (present !== undefined && Math.abs(Date.now() - present.mtimeMs) > MAX_REWRITE_MS) rmSync(file, { force: true });
  try {
    return openSync(file, 'wx');
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return undefined;
    throw error;
  }
}

/** What a file has from a position on. */
function rest(descriptor: number, position: number): Buffer {
  const bytes = Buffer.alloc(Math.max(fstatSync(descriptor).size - position, 0));
  return bytes.subarray(0, readSync(descriptor, bytes, 0, bytes.length, position));
}

function read(file: string): readonly Change[] {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
  return text.split('\n').flatMap((line) => (line === '' ? [] : (parse(line) ?? [])));
}

/** Undefined if it is damaged: what decides is noted again by each look at a proposal. */
function parse(line: string): Change | undefined {
  try {
    return changeSchema.parse(JSON.parse(line));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined;
    throw error;
  }
}
