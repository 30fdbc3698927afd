import { type Clock, timestamp } from '../../foundation/clock.ts';
import type { GitRepository, Oid, RefUpdate, Signature } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import type { PackageContent } from '../content.ts';
import type { RevisionIndex } from '../index/revision-index.ts';
import { type RepositoryLayout, recordRef } from '../layout.ts';
import type { PackageRevision } from '../package-revision.ts';
import type { EffectivePolicy } from '../policy.ts';
import { formatRecord, type RevisionRecord } from '../record.ts';
import type { Renderer } from '../renderer.ts';

/** What planning a write needs of a repository. Plans write objects, which nobody sees until their refs are committed. */
export interface Workbench {
  readonly repository: string;
  readonly namespace: string;
  /** Clusters sync from this repository. */
  readonly deployment: boolean;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly index: RevisionIndex;
  readonly clock: Clock;
  /** Runs the functions of packages; without it those that name some are not rendered as they are written. */
  readonly renderer?: Renderer | undefined;
  readonly identity: { readonly name: string; readonly email: string };
  /** The id of the empty tree, which exists in the repository from the first call on. */
  emptyTree(): Promise<Oid>;
  policyFor(revision: PackageRevision): EffectivePolicy;
  content(revision: PackageRevision): Promise<PackageContent>;
  /** Names of revisions, in any repository, that have this one as their upstream. */
  dependentsOf(revision: PackageRevision): string[];
}

/** Ref updates that belong together, and the revision that they leave behind. */
export interface WritePlan {
  readonly updates: readonly RefUpdate[];
  /** Name of the revision afterwards. */
  readonly name: string;
}

export function signatures(bench: Workbench, context: RequestContext): { author: Signature; committer: Signature } {
  const time = bench.clock.now();
  const name = context.actor.name.replace(/[<>\u0000-\u001f\u007f]/g, '').trim() || 'unknown';
  return {
    author: { name, email: bench.identity.email, time },
    committer: { name: bench.identity.name, email: bench.identity.email, time },
  };
}

/** What is written down about the request itself. */
export interface RecordNote {
  /** First line of the record's commit. */
  readonly subject: string;
  readonly action: string;
  /** The commit on the draft that comes with the record, if there is one. */
  readonly made?: Oid;
}

/** Writes a record commit on top of the record before and says how its ref moves. */
export async function writeRecord(
  bench: Workbench,
  revision: { readonly uid: string; readonly recordOid: Oid | undefined },
  record: RevisionRecord,
  note: RecordNote,
  context: RequestContext,
): Promise<Exclude<RefUpdate, { type: 'delete' | 'verify' }>> {
  const { subject, action, made } = note;
  const last = {
    action,
    by: context.actor.name,
    face: context.face,
    at: timestamp(bench.clock.now()),
    ...(context.reason === undefined ? {} : { reason: context.reason }),
    ...(made === undefined ? {} : { made }),
  };
  const { recordOid: before } = revision;
  // Whatever somebody put there: only a commit can be the parent of one.
  const [stat] = before === undefined ? [] : await bench.git.statObjects([before]);
  const oid = await bench.git.writeCommit({
    tree: await bench.emptyTree(),
    parents: before === undefined || stat?.type !== 'commit' ? [] : [before],
    ...signatures(bench, context),
    message: formatRecord(subject, { ...record, last }),
  });
  const ref = recordRef(bench.layout, revision.uid);
  return before === undefined ? { type: 'create', ref, new: oid } : { type: 'update', ref, old: before, new: oid };
}
