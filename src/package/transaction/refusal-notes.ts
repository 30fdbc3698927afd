import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { RevisionIndex } from '../index/revision-index.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { type RefusalNote, type RefusalReason, StoredRefusals } from './stored-refusals.ts';

export interface RefusalNotesOptions {
  readonly index: Pick<RevisionIndex, 'get'>;
  /** The folder of a mirror; undefined for a repository without a remote, whose notes are in memory. */
  readonly mirror: string | undefined;
  /** `<namespace>/<repository>`. Others may have the same mirror: they know nothing of the revisions of this one. */
  readonly registration: string;
}

/** A revision that cannot be written because of a rule of the remote. */
export interface RefusedPush {
  readonly revision: string;
  readonly message: string;
}

const PULL_ENDS = [
  'PullRequestClosed',
  'MergedOutside',
  'MergeWaits',
  'MergeNotPublished',
] as const satisfies RefusalReason[];
type PullEnd = (typeof PULL_ENDS)[number];
export type PullFailure = Extract<RefusalReason, 'PullRequestFailed' | 'ReviewerRefused' | 'ReplyFailed'>;

/** What the Git host refused or does not do, in whichever process, of the revisions of one repository that are as they were then. */
export class RefusalNotes {
  readonly #index: RefusalNotesOptions['index'];
  readonly #isMirror: boolean;
  readonly #stored: StoredRefusals;

  constructor({ index, mirror, registration }: RefusalNotesOptions) {
    this.#index = index;
    this.#isMirror = mirror !== undefined;
    const file = mirror === undefined ? undefined : refusalsFile(mirror, registration);
    this.#stored = new StoredRefusals(file, (note) => this.#isCurrent(note));
  }

  of(revision: string): readonly RefusalNote[] {
    return this.#stored.of(revision).filter((note) => this.#isCurrent(note));
  }

  /** Returns the refusals of last writes by rules of the remote (a protected branch, a hook). */
  refusedPushes(): RefusedPush[] {
    return this.#stored.list().filter((note) => note.reason === 'PushRefused' && this.#isCurrent(note));
  }

  isInMergeQueue({ name }: Pick<PackageRevision, 'name'>): boolean {
    return this.of(name).some(({ reason }) => reason === 'MergeQueued');
  }

  /** Notes why a rule of the remote refuses the writes of a revision. After an accepted one, what was to be merged is decided again. */
  notePush(revision: string, refusal: string | undefined): void {
    if (this.#isMirror) this.#note(revision, 'PushRefused', noteOf(refusal));
    if (refusal === undefined) this.noteNotMerged(revision, undefined);
  }

  /** Notes why the pull request of an approved revision is not merged, and what ends that; undefined ends the note. */
  noteNotMerged(revision: string, note: Pick<RefusalNote, 'message' | 'next'> | undefined): void {
    this.#note(revision, 'NotMerged', note);
  }

  /** Notes which teams of its reviewers cannot be read; undefined ends it. */
  noteUnreadTeams(revision: string, message: string | undefined): void {
    this.#note(revision, 'TeamNotRead', noteOf(message));
  }

  /** Notes which approving reviews do not count and why, or how many do for its merge, or that they are enough; undefined ends it. */
  noteReviews(
    revision: string,
    reason: 'ReviewNotCounted' | 'ReviewsCounted' | 'ApprovedByReview',
    message: string | undefined,
  ): void {
    this.#note(revision, reason, noteOf(message));
  }

  /** Notes what the Git host does not accept of the pull request of a revision; undefined ends it. */
  noteFailure(revision: string, reason: PullFailure, message: string | undefined): void {
    this.#note(revision, reason, noteOf(message));
  }

  /** Notes that the pull request of a revision has ended, with what is to be done, although the proposal has not; undefined: it is open. */
  noteEnd(revision: string, end: { readonly reason: PullEnd; readonly message: string } | undefined): void {
    for (const reason of PULL_ENDS)
      this.#note(revision, reason, noteOf(end?.reason === reason ? end.message : undefined));
  }

  /** Whether the pull request of a revision is known to have ended, so that nothing can be done there. */
  hasEnded({ name }: Pick<PackageRevision, 'name'>): boolean {
    return this.of(name).some(({ reason }) => PULL_ENDS.some((end) => end === reason));
  }

  /** Notes that the pull request of a revision, with this address, waits in a merge queue at the present commit; undefined ends it. */
  noteQueued(revision: string, url: string | undefined): void {
    this.#note(revision, 'MergeQueued', url === undefined ? undefined : { message: queuedMessage(url) });
  }

  #note(revision: string, reason: RefusalReason, note: Pick<RefusalNote, 'message' | 'next'> | undefined): void {
    const commit = this.#index.get(revision)?.commit;
    if (note === undefined) this.#stored.remove({ revision, reason });
    // A commit that could not be written cannot be explained.
    else if (commit !== undefined) this.#stored.add({ ...note, revision, commit, reason });
  }

  /** What is about a proposal ends with it. */
  #isCurrent({ revision: name, commit, reason }: RefusalNote): boolean {
    const revision = this.#index.get(name);
    return revision?.commit === commit && (reason === 'PushRefused' || revision.lifecycle === 'Proposed');
  }
}

/** The file of what the Git host refused of the revisions of a registration. */
export function refusalsFile(mirror: string, registration: string): string {
  return join(mirror, `sluice-refusals-${createHash('sha256').update(registration).digest('hex').slice(0, 16)}.ndjson`);
}

function noteOf(message: string | undefined): Pick<RefusalNote, 'message'> | undefined {
  return message === undefined ? undefined : { message };
}

function queuedMessage(url: string): string {
  return `${url} is in the merge queue of the host, which removes it when its branch gets a commit: until it has left the queue, controllers and comments make none, except to withdraw what opens a gate`;
}
