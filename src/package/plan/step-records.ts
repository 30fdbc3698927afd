import type { RefUpdate } from '../../git/git-repository.ts';
import { revisionName } from '../model/identity/identity.ts';
import { recordRef, tombstoneRef } from '../model/identity/layout.ts';
import { hasObjectMetadata } from '../model/record/record.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { deletionDigest, publicationDigest } from '../trust/ledger/publication-mark.ts';
import { DELETED, deletedContentScope, type NewMark } from '../trust/ledger/trust-ledger.ts';
import { markOf, type RepositoryContext, writeRecord } from './ports/repository-context.ts';
import type { DecidedStep, WrittenObjects } from './step-objects.ts';

/**
 * The record moves in the same transaction; publication folds it into the approval commit, deletion ends it. Of a published
 * revision that is deleted the last record stays in the place of its tag, so that it
 * stays known that it was deleted in order, by which actor and why.
 */
export async function recordUpdates(
  { repo, revision, decision, record, context }: DecidedStep,
  { made, merged, statementTag, fact }: WrittenObjects,
): Promise<{ updates: RefUpdate[]; marks: NewMark[] }> {
  const { layout, index } = repo;
  const { package: packageName } = revision.key;
  const { next } = decision;
  const commit = made ?? merged ?? revision.commit;
  const published = next?.lifecycle === 'Published' && revision.lifecycle === 'Proposed';
  const before = revision.recordOid;
  const step = record.steps.at(-1);
  const subject = `${step?.action} ${revision.name} by ${context.actor.name}${context.reason === undefined ? '' : `: ${context.reason}`}`;
  const note = { subject, action: step?.action ?? 'edit' };
  // The body of a message follows its statement.
  const subjectOf = fact === undefined ? revision : { ...revision, statement: fact };
  const marks: NewMark[] = fact === undefined ? [] : [markOf(fact)];
  // An earlier publication with this number does not count again.
  if (fact !== undefined && next !== undefined)
    marks.push(
      repo.trust.markOfPublication(revision.path, `v${next.revision}`, publicationDigest({ commit, statementTag })),
    );
  if (next !== undefined && !(published && !hasObjectMetadata(record))) {
    const { approvals: _approvals, contributors: _contributors, ...rest } = record;
    const kept = published
      ? { ...rest, commit, verdicts: [], steps: [], published: `v${next.revision}` }
      : { ...record, commit };
    const { update, mark } = await writeRecord(repo, subjectOf, kept, note, context);
    marks.push(mark);
    return { updates: published ? [update, ...dropTombstone(repo, packageName, next.revision)] : [update], marks };
  }
  const updates: RefUpdate[] =
    before === undefined
      ? []
      : [{ type: 'delete', ref: recordRef(layout, revision.path, revision.key.workspace), old: before }];
  if (published && next !== undefined) updates.push(...dropTombstone(repo, packageName, next.revision));
  if (next === undefined && revision.ref.startsWith('refs/tags/')) {
    const deleted = revision.ref.slice(revision.ref.lastIndexOf('/') + 1);
    const ref = tombstoneRef(layout, packageName, deleted);
    const { update, mark } = await writeRecord(repo, revision, { ...record, commit, deleted }, note, context);
    const old = index.ref(ref);
    const { new: last } = update;
    updates.push(old === undefined ? { type: 'create', ref, new: last } : { type: 'update', ref, old, new: last });
    marks.push(mark, publicationDeleted(repo, revision), ...deletedContentMark(repo, revision));
  } else if (next === undefined) marks.push(deletionMark(repo, revision));
  return { updates, marks };
}

/** Its tag, which a push can bring back, must not count again. */
function publicationDeleted({ trust }: RepositoryContext, { path, ref, refOid, tip }: PackageRevision): NewMark {
  const statementTag = refOid === tip.oid ? undefined : tip.statementTag;
  const version = ref.slice(ref.lastIndexOf('/') + 1);
  return trust.markOfPublication(path, version, deletionDigest({ commit: tip.oid, statementTag }));
}

/** Its folder stays on the main branch, and is the published content until another commit changes it. */
function deletedContentMark(
  { trust, index, layout }: RepositoryContext,
  { key, path, tip }: PackageRevision,
): NewMark[] {
  const placeholder = index.get(revisionName({ ...key, workspace: layout.branch }));
  if (tip.tree === undefined || placeholder?.tip.tree !== tip.tree) return [];
  const scope = deletedContentScope(path);
  const sequence = (trust.mark(scope)?.sequence ?? 0) + 1;
  return [{ scope: { ...scope, repository: trust.repository }, sequence, digest: tip.tree, proven: true }];
}

/** Deleting a draft writes no record; but its last record must not count again. */
function deletionMark({ trust }: RepositoryContext, { path, key, statement }: PackageRevision): NewMark {
  const scope = { package: path, workspace: key.workspace };
  const { sequence } = trust.next(scope, statement);
  return { scope: { ...scope, repository: trust.repository }, sequence, digest: DELETED, proven: true };
}

/** A new publication with the number removes the tombstone. */
function dropTombstone({ layout, index }: RepositoryContext, packageName: string, revision: number): RefUpdate[] {
  const ref = tombstoneRef(layout, packageName, `v${revision}`);
  const old = index.ref(ref);
  return old === undefined ? [] : [{ type: 'delete', ref, old }];
}
