import { conditionsOf, gatesOf, type Kptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import type { GitRepository, Oid } from '../../git/git-repository.ts';
import { isOid } from '../../git/objects/object-id.ts';
import { sameValue } from '../../resource/object/same-value.ts';
import { gateFactsFrom, type KptfileFacts, stateFrom } from '../kernel/revision-state.ts';
import { contentDigest, type PackageContent } from '../model/content/content.ts';
import { type PackageInputs, UNKNOWN_INPUTS } from '../model/content/inputs.ts';
import { unreadableReason } from '../model/content/unreadable-content.ts';
import { evaluateGates, type Gate } from '../model/gates/gates.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import { approvalsIn, type RevisionRecord } from '../model/record/record.ts';
import { approvalOf } from '../model/revision/attribution.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type {
  ForeignFiles,
  MergedProposal,
  MergeFacts,
  PushedSince,
  RevisionState,
} from '../model/revision/revision-state.ts';
import { describeKptfileProblems, kptfileProblems } from './edit/kptfile-problems.ts';
import { conditionsWithFacts, type MergedFacts, recordWithFacts, recordWithReviews } from './merged-facts.ts';
import type { RepositoryContext } from './ports/repository-context.ts';
import { publishedAbove, readOnMain } from './records/on-main.ts';
import { currentRecord } from './records/record-at-tip.ts';

/** Reads the input of the kernel for a revision at one point in time. */
export async function stateOf(repo: RepositoryContext, revision: PackageRevision): Promise<RevisionState> {
  return (await readState(repo, revision)).state;
}

/** The state of a revision, and its sources. */
export interface StateReading {
  readonly state: RevisionState;
  readonly record: RevisionRecord;
  /** `state.problem` contains the reason if the package cannot be read. It can still be rejected and deleted. */
  readonly content: PackageContent | undefined;
  /** The package in the commit of a merge; undefined if it has none. */
  readonly mergedTree?: Oid | undefined;
}

/** What a Git host that merged a proposal reports about it, and how to judge that. */
interface KnownFromHost {
  readonly merged: MergedProposal;
  readonly facts?: MergedFacts | undefined;
  readonly policy: EffectivePolicy;
  /** RFC 3339. */
  readonly at: string;
}

export async function readState(
  repo: RepositoryContext,
  revision: PackageRevision,
  mainHead?: Oid,
  known?: KnownFromHost,
  { byMerge = false }: { readonly byMerge?: boolean | undefined } = {},
): Promise<StateReading> {
  const { content, problem } = await contentOf(repo, revision);
  const own = await currentRecord(repo, revision, content);
  const record = known === undefined || content === undefined ? own : recordWith(own, known, content, revision);
  const { merged, facts } = known ?? {};
  const pushedSince = await pushedSinceProposal(repo, revision, record);
  const decided = approvalsIn(record, revision.namespace).flatMap(({ mergeOf, content: of, tree }) =>
    mergeOf !== undefined && of === content?.content ? tree : [],
  );
  const merge =
    merged === undefined
      ? undefined
      : await readMerge(repo, revision, { merged, decided, content: content?.content }, mainHead);
  const head = mainHead ?? repo.index.mainHead;
  const onMain = merged === undefined ? await readOnMain(repo, revision, record, head) : undefined;
  const foreign = await readForeign(repo, revision, record, { merged: merge && merged, byMerge, head });
  // There is no await from here on, so that the data of several revisions is consistent.
  const { layout, index } = repo;
  const kptfile = kptfileFacts(revision);
  const conditions =
    known === undefined || facts === undefined
      ? kptfile.conditions
      : conditionsWithFacts(kptfile.conditions, own, facts, known.policy);
  const state = stateFrom({
    ...{ layout, revision, record, pushedSince },
    kptfile: { ...kptfile, conditions },
    problem: revision.problem ?? problem,
    invalidKptfile: content === undefined ? undefined : describeKptfileProblems(kptfileProblems(content.files)),
    inputs: content ?? UNKNOWN_INPUTS,
    publishedBy: approvalOf(revision)?.by,
    lastPublishedAt: lastPublishedAt(index.ofPackage(revision.key.package)),
    ofPackage: index.ofPackage(revision.key.package),
    nestedWith: index.nestedWith(revision.key.package),
    dependents: revision.lifecycle === 'DeletionProposed' ? repo.dependentsOf(revision) : [],
    mainHead: head,
    ...{ merge: merge?.facts, onMain, foreign },
    refAt: (name) => index.ref(name),
    tagConflict: (tag) => index.tagConflict(tag),
  });
  return { state, record, content, mergedTree: merge?.tree };
}

/** What a merge of the branch by the Git host changes, or has changed, besides the package. */
async function readForeign(
  { foreign }: RepositoryContext,
  { commit, path }: PackageRevision,
  record: RevisionRecord,
  {
    merged,
    byMerge,
    head,
  }: { readonly merged: MergedProposal | undefined; readonly byMerge: boolean; readonly head: Oid | undefined },
): Promise<ForeignFiles | undefined> {
  const base = record.base?.commit;
  if (merged?.head !== undefined) return foreign.ofMerge({ ...merged.head, base }, merged.commit, merged.head.onto);
  return byMerge && head !== undefined ? foreign.ofHead({ commit, paths: [path], base }, head) : undefined;
}

function recordWith(
  own: RevisionRecord,
  { merged, facts, policy, at }: KnownFromHost,
  content: PackageContent,
  { namespace }: PackageRevision,
): RevisionRecord {
  const record = facts === undefined ? own : recordWithFacts(own, facts, { content, policy, at });
  return recordWithReviews(record, merged.approvals ?? [], { content, policy, namespace });
}

/** The time of the last publication that came through the kernel: that of any other is chosen by a pusher. */
export function lastPublishedAt(ofPackage: readonly PackageRevision[]): number | undefined {
  let last: number | undefined;
  for (const { revision, lifecycle, outOfBand, tip } of ofPackage) {
    if (revision < 1 || outOfBand !== undefined || lifecycle === 'Draft' || lifecycle === 'Proposed') continue;
    if (last === undefined || tip.time > last) last = tip.time;
  }
  return last;
}

/** Undefined if the repository has no such commit. `content`: the digest of the proposed one. */
async function readMerge(
  repo: RepositoryContext,
  { path, tip, kptfile, key }: PackageRevision,
  {
    merged: { commit: merged, head },
    decided,
    content,
  }: { readonly merged: MergedProposal; readonly decided: readonly Oid[]; readonly content: string | undefined },
  mainHead: Oid | undefined,
): Promise<{ readonly facts: MergeFacts; readonly tree: Oid | undefined } | undefined> {
  if (!isOid(merged)) return undefined;
  const { git, index } = repo;
  const heads = head !== undefined && isOid(head.commit) ? [`${head.commit}:${path}`] : [];
  const [commit, folder, atHead] = await git.statObjects([merged, `${merged}:${path}`, ...heads]);
  if (commit?.type !== 'commit') return undefined;
  const [onto] = (await git.readCommit(merged)).parents;
  const tree = folder?.oid;
  const isProposed = tree !== undefined && (tree === tip.tree || decided.includes(tree));
  // Conditions that are set after the merge move the branch on.
  const isBefore =
    tree !== undefined && tree === atHead?.oid && (await hasOtherConditions(git, tree, content, kptfile));
  const hasProposedTree = isProposed || isBefore;
  const isOnMain = await index.isOnMain(merged, mainHead);
  const above = isOnMain ? await publishedAbove(repo, key.package, merged, mainHead) : undefined;
  const later = above === undefined ? {} : { later: { name: above.name, revision: above.revision } };
  return { facts: { isOnMain, onto, hasProposedTree, ...later }, tree };
}

/** Whether a tree is the package with this content and the same gates, so that only conditions can differ. */
async function hasOtherConditions(
  git: GitRepository,
  tree: Oid,
  content: string | undefined,
  kptfile: Kptfile | undefined,
): Promise<boolean> {
  if (content === undefined) return false;
  const entries = await git.readTree(tree);
  const [file] = await git.readObjects([`${tree}:Kptfile`]);
  const read = file?.type === 'blob' ? readKptfile(file.data) : undefined;
  if (entries === undefined || read?.ok !== true || kptfile === undefined) return false;
  return (
    contentDigest(entries, read.kptfile, file?.data) === content && sameValue(gatesOf(read.kptfile), gatesOf(kptfile))
  );
}

async function pushedSinceProposal(
  { git }: RepositoryContext,
  { lifecycle, path, tip }: PackageRevision,
  { steps }: RevisionRecord,
): Promise<PushedSince | undefined> {
  if (lifecycle !== 'Proposed' || steps.at(-1)?.action !== 'push') return undefined;
  const proposed = steps.findLast(({ action }) => action === 'propose')?.commit;
  if (proposed === undefined) return undefined;
  const [folder] = await git.statObjects([`${proposed}:${path}`]);
  if (folder === undefined || tip.tree === undefined) return { proposed, files: undefined };
  if (folder.oid === tip.tree) return undefined;
  return { proposed, files: await changedFiles(git, folder.oid, tip.tree) };
}

/** Undefined where one of the trees cannot be read. */
async function changedFiles(git: GitRepository, before: Oid, after: Oid): Promise<string[] | undefined> {
  try {
    return (await git.diffTrees(before, after)).map((change) => change.path);
  } catch (error) {
    if (unreadableReason(error) === undefined) throw error;
    return undefined;
  }
}

/** Evaluates the gates of a revision with its record and current inputs. */
export function gatesAt(
  revision: PackageRevision,
  record: RevisionRecord,
  inputs: PackageInputs,
  policy: EffectivePolicy,
  at: string,
): Gate[] {
  return evaluateGates(gateFactsFrom(kptfileFacts(revision), revision.lifecycle, record, inputs), policy, at);
}

function kptfileFacts({ kptfile }: PackageRevision): KptfileFacts {
  return kptfile === undefined
    ? { gates: [], conditions: new Map() }
    : { gates: gatesOf(kptfile), conditions: conditionsOf(kptfile) };
}

/** The package, or why it cannot be read. */
async function contentOf(
  repo: RepositoryContext,
  revision: PackageRevision,
): Promise<{ content: PackageContent | undefined; problem?: string }> {
  try {
    return { content: await repo.content(revision) };
  } catch (error) {
    const problem = unreadableReason(error);
    if (problem === undefined) throw error;
    return { content: undefined, problem };
  }
}
