import { type Condition, conditionsOf } from '../../../../kptfile-schema/index.ts';
import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { unreadableReason } from '../../model/content/unreadable-content.ts';
import { type RevisionKey, revisionName } from '../../model/identity/identity.ts';
import { packagePath, proposedRef, tombstoneRef } from '../../model/identity/layout.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import type { PackageRevision } from '../../model/revision/package-revision.ts';
import type { MergedProposal } from '../../model/revision/revision-state.ts';
import { markedPublications, parsePublicationDigest, publicationScope } from '../../trust/ledger/publication-mark.ts';
import { DELETED } from '../../trust/ledger/trust-ledger.ts';
import type { MergedFacts } from '../merged-facts.ts';
import type { RepositoryContext, WritePlan } from '../ports/repository-context.ts';
import { latestIn, publishedAbove } from '../records/on-main.ts';
import { currentRecord } from '../records/record-at-tip.ts';
import { planTransition, type Transition } from '../transition.ts';
import { inSequence } from '../update.ts';
import { checkPlace } from './place.ts';

/** A package that the pull request of a user brought to the main branch, without a draft of it in Sluice. */
export interface MergedPackage {
  readonly package: string;
  /** Of the revision that it becomes; no other one has it. */
  readonly workspace: string;
  readonly merged: MergedProposal;
  readonly facts: MergedFacts;
}

/** What a merged package is judged as: a proposal that was pushed with the commit of the merge. Throws if there is no place for it. */
export async function previewMergedPackage(repo: RepositoryContext, wanted: MergedPackage): Promise<PackageRevision> {
  return proposalOf(repo, await planProposal(repo, wanted));
}

/** What is merged onto a package begins with. */
export interface RecordedContent {
  readonly record: RevisionRecord;
  readonly content: PackageContent;
  readonly conditions: ReadonlyMap<string, Condition>;
}

/** Reads the record of a package at a commit of the main branch as a merge of it has that. Undefined where there is no package, or one that cannot be read. */
export async function recordAt(
  repo: RepositoryContext,
  { package: name, commit }: { readonly package: string; readonly commit: Oid },
): Promise<RecordedContent | undefined> {
  // Nothing is written, so that no revision gets this workspace.
  const key = { repository: repo.repository, package: name, workspace: `record-at-${commit}` };
  try {
    const revision = await proposalOf(repo, await proposalAt(repo, key, commit));
    const { kptfile } = revision;
    const content = await repo.content(revision);
    const record = await currentRecord(repo, revision, content);
    return { record, content, conditions: kptfile === undefined ? new Map() : conditionsOf(kptfile) };
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return undefined;
  }
}

/**
 * The workspace for a merged package: `base`, or the next of `<base>-2`, `<base>-3` that no other revision has, since each user who may create or
 * push drafts can take a name before the merge. The one of its publication if that was deleted, which does not come back under another name.
 */
export function mergeWorkspace(
  repo: RepositoryContext,
  { package: name, base, commit }: { readonly package: string; readonly base: string; readonly commit: Oid },
): string {
  const taken = new Set(repo.index.ofPackage(name).map(({ key }) => key.workspace));
  const path = packagePath(repo.layout, name);
  let free: string | undefined;
  for (let count = 1; ; count += 1) {
    const workspace = count === 1 ? base : `${base}-${count}`;
    if (taken.has(workspace)) continue;
    const mark = repo.trust.mark({ package: path, workspace });
    const isDraft = mark === undefined || mark.digest === DELETED;
    if (!isDraft && wasPublished(repo, name, commit)) return workspace;
    // Under the name of a record that was removed by a push there is no place either.
    if (isDraft) free ??= workspace;
    if (mark === undefined) return free ?? workspace;
  }
}

/** Whether the package was published at a commit, by the marks of its publications, which outlast these. */
export function wasPublished(
  { index, layout, trust }: Pick<RepositoryContext, 'index' | 'layout' | 'trust'>,
  name: string,
  commit: Oid,
): boolean {
  const path = packagePath(layout, name);
  const first = tombstoneRef(layout, name, 'v');
  const deleted = index
    .tombstoneRefs()
    .flatMap((ref) => (ref.startsWith(first) ? Number(ref.slice(first.length)) : []));
  // Other tags can have left a gap of any size below these.
  for (const revision of [...deleted, ...index.ofPackage(name).map((one) => one.revision)]) {
    const mark = trust.mark(publicationScope(path, `v${revision}`));
    if (mark !== undefined && parsePublicationDigest(mark.digest).commit === commit) return true;
  }
  for (const one of markedPublications(trust, path)) if (one.commit === commit) return true;
  return false;
}

/**
 * Why there is no place for a package once it is merged, as far as that is known before the merge; one sentence. Cheap. That another revision has the
 * workspace is no problem: a merge takes another one.
 */
export function placeProblem(
  repo: RepositoryContext,
  wanted: { readonly package: string; readonly workspace: string },
): string | undefined {
  try {
    placeOf(repo, wanted);
    return undefined;
  } catch (error) {
    if (isSluiceError(error, 'AlreadyExists')) return undefined;
    if (!isSluiceError(error) || !PROBLEMS.has(error.code)) throw error;
    return error.message;
  }
}

/** Why a merged package gets no revision, whatever its gates are; undefined if nothing but the kernel decides. One sentence. */
export async function mergedPackageProblem(
  repo: RepositoryContext,
  wanted: { readonly package: string; readonly workspace: string; readonly commit: Oid },
): Promise<string | undefined> {
  try {
    const key = placeOf(repo, wanted);
    const { commit } = wanted;
    const latest = latestIn(repo.index.ofPackage(key.package));
    const above =
      latest?.commit === commit ? latest : await publishedAbove(repo, key.package, commit, repo.index.mainHead);
    if (above === undefined) return undefined;
    return `cannot publish the commit ${commit} as ${revisionName(key)}: ${above.name} was published at this or a later commit of the main branch, as v${above.revision}; if its content is missing there, propose a new revision`;
  } catch (error) {
    if (!isSluiceError(error) || !PROBLEMS.has(error.code)) throw error;
    return error.message;
  }
}

const PROBLEMS: ReadonlySet<string> = new Set(['Refused', 'InvalidInput']);

/**
 * Plans the publication of a merged package. The proposal is part of the same transaction, so that its tag is all that is written: there is no
 * state between. `mainHead` is the head of the main branch when the plan will be committed.
 */
export async function planMergedPackage(
  repo: RepositoryContext,
  wanted: MergedPackage,
  how: Pick<Transition, 'closedNow' | 'evidence'>,
  context: RequestContext,
  mainHead = repo.index.mainHead,
): Promise<WritePlan> {
  const { merged, facts } = wanted;
  const proposal = await planProposal(repo, wanted);
  const revision = await proposalOf(repo, proposal);
  const published = await planTransition(
    repo,
    revision,
    { action: 'approve', ...how, merged, facts },
    context,
    mainHead,
  );
  return { ...published, updates: inSequence(proposal.updates, published.updates) };
}

async function planProposal(repo: RepositoryContext, { merged, ...wanted }: MergedPackage): Promise<WritePlan> {
  return proposalAt(repo, placeOf(repo, wanted), merged.commit);
}

async function proposalAt(repo: RepositoryContext, key: RevisionKey, commit: Oid): Promise<WritePlan> {
  const path = packagePath(repo.layout, key.package);
  const [kptfile] = await repo.git.statObjects([`${commit}:${path}/Kptfile`]);
  if (kptfile?.type !== 'blob')
    throw new SluiceError('NotFound', `there is no package ${path} at the commit ${commit}`);
  const updates = [{ type: 'create', ref: proposedRef(repo.layout, key), new: commit } as const];
  return { updates, name: revisionName(key), marks: [], revokes: false };
}

function placeOf(repo: RepositoryContext, wanted: Pick<MergedPackage, 'package' | 'workspace'>): RevisionKey {
  const key = checkPlace(repo, { ...wanted, source: { type: 'copy', source: '' } });
  refuseDeleted(repo, packagePath(repo.layout, key.package), key.workspace);
  return key;
}

async function proposalOf(repo: RepositoryContext, plan: WritePlan): Promise<PackageRevision> {
  const revision = await repo.preview(plan);
  if (revision === undefined) throw new SluiceError('Internal', `the index does not show ${plan.name}`);
  return revision;
}

/** A publication that a user has deleted does not come back when its pull request is read again. */
function refuseDeleted(repo: RepositoryContext, path: string, workspace: string): void {
  const mark = repo.trust.mark({ package: path, workspace });
  if (mark === undefined || mark.digest === DELETED) return;
  throw new SluiceError(
    'Refused',
    `cannot publish ${path} as the workspace ${workspace}: a revision of this name existed and was deleted; propose a new one`,
  );
}
