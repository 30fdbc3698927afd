import type { Kptfile } from '../../../../kptfile-schema/index.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { Distrust } from '../../trust/distrust.ts';
import type { Signer, StatementFact } from '../../trust/repository-trust.ts';
import type { RevisionKey } from '../identity/identity.ts';
import type { CommitFacts } from '../record/commit-message.ts';
import type { RevisionRecord } from '../record/record.ts';
import type { Lifecycle } from './revision-state.ts';

/** Reason why a publication does not count, one of `PublicationFlaw`. */
export interface OutOfBand {
  readonly reason: string;
  readonly message: string;
  /** See `behindMark`. */
  readonly behind?: number;
}

/** One version of a package as the index knows it from refs, one commit, the Kptfile and the record. Immutable. */
export interface PackageRevision {
  readonly key: RevisionKey;
  /** Of its repository. */
  readonly namespace: string;
  /** Unique in its namespace; see `revisionId`. */
  readonly name: string;
  readonly uid: string;
  readonly lifecycle: Lifecycle;
  /** -1 for the placeholder on the main branch and for tags that are not `v<N>`, 0 before publication. */
  readonly revision: number;
  /** The highest published revision of its package. */
  readonly latest: boolean;
  /** The ref it is read from, and what that ref points to (a tag object, for an annotated tag). */
  readonly ref: string;
  readonly refOid: Oid;
  readonly commit: Oid;
  /** Folder of the package in the commit's tree. */
  readonly path: string;
  readonly kptfile: Kptfile | undefined;
  /** Reason why the Kptfile cannot be read. Such a revision stays listed and cannot be proposed. */
  readonly problem: string | undefined;
  readonly tip: CommitInfo;
  /** Its record, if a trusted key signed it; without verdicts and approvals while it is not proven to be the last one. */
  readonly record: RevisionRecord | undefined;
  /** Object id of its record ref; without a `record` the ref has none, or none that counts. */
  readonly recordOid: Oid | undefined;
  /** The statement that `record` is from. */
  readonly statement: StatementFact | undefined;
  /** Reason why there is no `record` although there is, or was, one. */
  readonly recordDistrust: Distrust | undefined;
  /** Set if it was published or changed without the kernel: why, as one sentence. */
  readonly outOfBand: OutOfBand | undefined;
  /** Other refs that claim the same name, and are not shown because of this one. */
  readonly hides: readonly string[];
  /** Changes whenever anything above changes; equal only if all is equal. */
  readonly etag: string;
}

/** The part of a revision that policies depend on. */
export type PolicySubject = Pick<PackageRevision, 'key' | 'name' | 'namespace' | 'path' | 'kptfile' | 'record'>;

/** The stored facts about the commit of a revision. */
export interface CommitInfo {
  /** The commit itself, also where the ref points to a tag object. */
  readonly oid: Oid;
  /** Commit time, milliseconds since the epoch. */
  readonly time: number;
  readonly author: string;
  /** E-mail address of the author; undefined for commits of Sluice, whose actor is in the message. */
  readonly authorEmail?: string;
  /** Author time in milliseconds since the epoch; undefined if it equals `time`. */
  readonly authorTime?: number;
  /** Of a commit with several publications the first one, and the draft of this publication. */
  readonly parents: readonly Oid[];
  readonly subject: string;
  readonly facts: CommitFacts;
  /** The tag object, if the statement is in its message and not in that of the commit. */
  readonly statementTag?: Oid;
  /** The key that made its statement; see `Signer`. */
  readonly signer?: Signer;
  /** Tree of the package's folder in this commit. */
  readonly tree: Oid | undefined;
  /** Blob of the package's Kptfile in this commit. */
  readonly kptfileBlob: Oid | undefined;
}

/** Returns the key of a revision in all namespaces: `<namespace>/<name>`. */
export function revisionId({ namespace, name }: Pick<PackageRevision, 'namespace' | 'name'>): string {
  return `${namespace}/${name}`;
}

/** Returns the key of its repository in all namespaces. */
export function repositoryIdOf({ namespace, key }: Pick<PackageRevision, 'namespace' | 'key'>): string {
  return `${namespace}/${key.repository}`;
}

export function isPlaceholder(revision: Pick<PackageRevision, 'revision' | 'ref'>): boolean {
  return revision.revision === -1 && revision.ref.startsWith('refs/heads/');
}

/**
 * Returns the sequence of the mark in the trust ledger that the record or the publication is older than; undefined if neither is. Until Git was read
 * once more this need not be a push: another process on the ledger may have written since the refs were read.
 */
export function behindMark({
  recordDistrust,
  outOfBand,
}: Pick<PackageRevision, 'recordDistrust' | 'outOfBand'>): number | undefined {
  return recordDistrust?.behind ?? outOfBand?.behind;
}

export function isPublished(revision: PackageRevision): boolean {
  return revision.lifecycle === 'Published' || revision.lifecycle === 'DeletionProposed';
}
