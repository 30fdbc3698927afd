import { type Clock, timestamp } from '../../../foundation/time/clock.ts';
import type { GitRepository, Oid, RefUpdate, Signature } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import type { RevisionIndex } from '../../index/revision-index.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { type RepositoryLayout, recordRef } from '../../model/identity/layout.ts';
import type { EffectivePolicy } from '../../model/policy/policy.ts';
import { formatRecord, type RecordStatement, type RevisionRecord } from '../../model/record/record.ts';
import type { PackageRevision, PolicySubject } from '../../model/revision/package-revision.ts';
import type { NewMark } from '../../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust, StatementFact } from '../../trust/repository-trust.ts';
import { STATEMENT_VERSION, scopeOf } from '../../trust/statement/statement.ts';
import type { ForeignFileReader } from './foreign-file-reader.ts';
import type { Renderer } from './renderer.ts';

/**
 * The parts of a repository that planning a write needs. Plans write objects, which are unreachable until their refs are
 * committed.
 */
export interface RepositoryContext {
  readonly repository: string;
  readonly namespace: string;
  /** Clusters sync from this repository. */
  readonly deployment: boolean;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly index: RevisionIndex;
  readonly clock: Clock;
  /** What merges of branches change besides their packages. */
  readonly foreign: ForeignFileReader;
  /** Signs statements, and knows how far those on each revision have come. */
  readonly trust: RepositoryTrust;
  /** Runs the functions of packages; without it those that name some are not rendered as they are written. */
  readonly renderer?: Renderer | undefined;
  readonly identity: { readonly name: string; readonly email: string };
  /** The id of the empty tree, which exists in the repository from the first call on. */
  emptyTree(): Promise<Oid>;
  policyFor(revision: PolicySubject): EffectivePolicy;
  /** The revision as the index has it, once trusted keys and policies are read as they are now. Throws NotFound. */
  current(name: string): Promise<PackageRevision>;
  /** Returns the revision after a plan; undefined if it would be deleted. */
  preview(plan: WritePlan): Promise<PackageRevision | undefined>;
  content(revision: PackageRevision): Promise<PackageContent>;
  /** What the Git host refused or does not do. */
  readonly refusals: {
    /** Whether its pull request waits in a merge queue of the Git host at its present commit, as far as is known. */
    isInMergeQueue(revision: PackageRevision): boolean;
  };
  /** Names of revisions, in any repository, that have this one as their upstream. */
  dependentsOf(revision: PackageRevision): string[];
}

/** Ref updates that belong together, and the revision that they leave behind. */
export interface WritePlan {
  readonly updates: readonly RefUpdate[];
  /** Name of the revision afterwards. */
  readonly name: string;
  /** The new positions of statement chains. */
  readonly marks: readonly NewMark[];
  /** The plan revokes data, such as a condition or a proposal: the marks must be on disk before the caller gets the result. */
  readonly revokes: boolean;
}

export type RefWrite = Exclude<RefUpdate, { type: 'delete' | 'verify' }>;

export function signatures(
  repo: RepositoryContext,
  context: RequestContext,
): { author: Signature; committer: Signature } {
  const time = repo.clock.now();
  const name = context.actor.name.replace(/[<>\u0000-\u001f\u007f]/g, '').trim() || 'unknown';
  return {
    author: { name, email: repo.identity.email, time },
    committer: { name: repo.identity.name, email: repo.identity.email, time },
  };
}

/** The recorded facts about the request itself. */
export interface RecordNote {
  /** First line of the record's commit. */
  readonly subject: string;
  readonly action: string;
  /** The commit on the draft that comes with the record, if there is one. */
  readonly made?: Oid;
  /** The record before where that has another ref. */
  readonly onTopOf?: Oid;
}

/** The subject of a record. */
export type RecordSubject = Pick<PackageRevision, 'path' | 'recordOid' | 'statement'> & {
  readonly key: { readonly workspace: string };
} & Partial<Pick<PackageRevision, 'lifecycle' | 'revision'>>;

/** Signs a record as the next statement on its revision, writes it on top of the record before, and returns how its ref moves. */
export async function writeRecord(
  repo: RepositoryContext,
  revision: RecordSubject,
  record: RevisionRecord,
  note: RecordNote,
  context: RequestContext,
): Promise<{ readonly update: RefWrite; readonly fact: StatementFact; readonly mark: NewMark }> {
  const { subject, action, made } = note;
  const last = {
    action,
    by: context.actor.name,
    face: context.face,
    at: timestamp(repo.clock.now()),
    ...(context.reason === undefined ? {} : { reason: context.reason }),
    ...(made === undefined ? {} : { made }),
  };
  const { path, key, recordOid: before } = revision;
  const scope = { package: path, workspace: key.workspace };
  const statement: RecordStatement = {
    ...{ statement: STATEMENT_VERSION, kind: 'record', repository: repo.trust.repository, ...scope },
    ...repo.trust.next(scope, revision.statement),
    record: { recordedAt: last.at, ...record, ...publicationOf(revision), last },
  };
  const { signed, fact } = await repo.trust.sign(statement);
  // A push can put any object there; only a commit can be the parent of one.
  const parent = before ?? note.onTopOf;
  const [stat] = parent === undefined ? [] : await repo.git.statObjects([parent]);
  const oid = await repo.git.writeCommit({
    tree: await repo.emptyTree(),
    parents: parent === undefined || stat?.type !== 'commit' ? [] : [parent],
    ...signatures(repo, context),
    message: formatRecord(subject, signed),
  });
  repo.index.noteRecord(oid, signed, fact);
  const ref = recordRef(repo.layout, path, key.workspace);
  const update: RefWrite =
    before === undefined ? { type: 'create', ref, new: oid } : { type: 'update', ref, old: before, new: oid };
  return { update, fact, mark: markOf(fact) };
}

/** Data of a publication must not count as the record of a draft that a push creates from it. */
function publicationOf({ lifecycle, revision = 0, key }: RecordSubject): Pick<RevisionRecord, 'published'> {
  if (lifecycle !== 'Published' && lifecycle !== 'DeletionProposed') return {};
  return { published: revision > 0 ? `v${revision}` : key.workspace };
}

export function markOf({ head, digest }: StatementFact): NewMark {
  return { scope: scopeOf(head), sequence: head.sequence, digest, proven: true };
}
