import { type Kptfile, MAX_KPTFILE_BYTES, readKptfile } from '../../../kptfile-schema/index.ts';
import type { Forge, MergedState, PullRequest, Review } from '../../../src/forge/forge.ts';
import { isSluiceError, SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { type RevisionKey, revisionName } from '../../../src/package/model/identity/identity.ts';
import type { EffectivePolicy } from '../../../src/package/model/policy/policy.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import {
  isPlaceholder,
  isPublished,
  type PackageRevision,
} from '../../../src/package/model/revision/package-revision.ts';
import { mergedPackageProblem, mergeWorkspace, wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { Renderer } from '../../../src/package/plan/ports/renderer.ts';
import { recordedBypass } from '../../../src/package/plan/records/recorded-bypass.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { awaitedMerges, otherPulls } from '../../pull-request/merged/earlier-merges.ts';
import { hasCommit } from '../../pull-request/merged/fetch-head.ts';
import { isMergedBefore } from '../../pull-request/merged/merge-publication.ts';
import {
  type MergeAttempt,
  mergedProposal,
  mergeText,
  publishInName,
  requestInName,
} from '../../pull-request/merged/publish-in-name.ts';
import {
  approvalsAtMerge,
  mergeAsApproval,
  noRightText,
  reviewsAsCandidates,
  reviewsUntilMerge,
  type UserApproval,
} from '../../pull-request/reviews/approvals-at-merge.ts';
import { commitsThatCount, ofUserPull } from '../../pull-request/reviews/reviewed-package.ts';
import { contentAt } from '../../pull-request/reviews/same-content.ts';
import { approvedCommits, evaluateReviews } from '../../pull-request/reviews/verdicts.ts';
import type { MayApprove } from '../../pull-request/rights.ts';
import { type JudgedPackage, judgePackage } from '../judging/judge-package.ts';
import { mergePackage } from '../judging/merge-package.ts';
import { isChecked, keyAt } from '../judging/read-user-pull.ts';
import { isPassedOver } from './merge-failures.ts';
import { countedRendering, mergedConditions } from './merged-package-facts.ts';
import { type PackageAtMerge, type PackagesAtMerge, packagesAtMerge } from './merged-packages.ts';
import type { MergedUserPull } from './merged-user-pull.ts';

export interface UserMergeContext {
  readonly store: Pick<RevisionStore, 'publishMerged'>;
  readonly repository: PackageRepository;
  readonly forge: Forge;
  readonly clock: Pick<Clock, 'monotonic' | 'now'>;
  readonly renderer: Renderer | undefined;
  readonly restrictedRenderer: Renderer | undefined;
  readonly mayApprove: MayApprove | undefined;
  /** Where the members of the teams of a policy are read. */
  teamsOf(review: ReviewPolicy): Pick<Forge, 'isTeamMember'>;
  /** Since when merges publish by the policy. */
  mergesSince(review: ReviewPolicy): ReviewPolicy['mergesSince'];
  /** The same of all policies that let merges publish. */
  readonly allMergesSince: readonly NonNullable<ReviewPolicy['mergesSince']>[];
  /** False for the pull request of a proposal. */
  isOfUser(pull: PullRequest): Promise<boolean>;
  /** Called for each package once it is published, in band or out of band. */
  onPublished(one: PackageMerge): Promise<void>;
  readonly signal: AbortSignal;
}

/** What became of a package of a merged pull request. Texts are one line; `refusal` is why it could not be published in band. */
export type PackageMerge = { readonly path: string } & (
  | { readonly result: 'published'; readonly revision: PackageRevision }
  | { readonly result: 'out_of_band'; readonly revision: PackageRevision; readonly refusal: string }
  | { readonly result: 'not_published'; readonly reason: string }
  | { readonly result: 'left_out'; readonly reason: string }
  | { readonly result: 'removed' }
);

export interface UserMerge {
  /** Sorted by path. */
  readonly packages: readonly PackageMerge[];
  /** Those that were published before. */
  readonly known: readonly PackageMerge[];
  /** Why it may have changed other packages, which a policy may let it publish, and the next step; undefined if these are all. */
  readonly unknown: string | undefined;
}

/** Packages of a merge whose files are not searched in time, in one attempt: each takes up to twenty seconds of the time for a reconciliation. */
const MAX_LATE = 5;

/** The workspace of the revisions that the merge of a pull request publishes, or its beginning. It is none of an adopted draft, which stays a draft. */
function mergeWorkspaceOf(number: number): string {
  return `merge-${number}`;
}

/**
 * Publishes the packages of a merged pull request at the commit of its merge, each by itself: a closed gate of one of them marks that one as out of
 * band. Those that were published before stay as they are, so that it can be repeated. Returns `missing` if the main branch of the mirror does not have
 * the commit yet, and `waits` if it waits for its head, or for earlier merges of proposals. `wait`: when the commit was found, which it notes there. A
 * package with files that cannot be searched for mistakes in time is tried again, which rejects after the others are published, until the merge was
 * passed over: then it is out of band.
 */
export async function publishUserMerge(
  context: UserMergeContext,
  listed: PullRequest,
  wait: Pick<MergedUserPull, 'foundMs' | 'failing' | 'checkedOnto'>,
): Promise<UserMerge | 'missing' | 'waits'> {
  const { repository, forge, clock, signal } = context;
  // By a policy that was just written the merge may publish: otherwise it would be settled without that.
  await repository.refreshPolicies();
  const commit = listed.merged?.commit ?? '';
  if (!(await hasCommit(repository, commit)) || !(await repository.index.isOnMain(commit))) return 'missing';
  wait.foundMs ??= clock.monotonic();
  const waitedMs = clock.monotonic() - wait.foundMs;
  const surroundings = {
    ...{ otherPulls: () => otherPulls(forge, listed.number, signal), isOfUser: context.isOfUser },
    ...{ checkedOnto: wait.checkedOnto, waitedMs },
  };
  const read = await packagesAtMerge(repository, listed, surroundings, signal);
  // The commits of a shared branch may have been fetched just now, which has ended before this process began.
  if (!(await context.isOfUser(listed))) return { packages: [], known: [], unknown: undefined };
  if (read === undefined) return 'waits';
  const wanted: (PackageAtMerge & Publication)[] = [];
  const known: PackageMerge[] = [];
  for (const one of read.packages) {
    const before = await publishedAt(repository, one.path, commit);
    const how = before === undefined ? await publicationOf(context, one, { ...listed, commit }) : undefined;
    if (before !== undefined) known.push(before);
    else if (how !== undefined) wanted.push({ ...one, ...how });
  }
  const counts = async (one: PullRequest) => !(await context.isOfUser(one));
  for (const { path, after } of wanted) {
    if (after === undefined) continue;
    const { package: name } = keyAt({ repository, workspace: '' }, path);
    const at = { package: name, path, commit, number: listed.number };
    if ((await awaitedMerges(repository, forge, at, { waitedMs, counts, signal })).length > 0) return 'waits';
  }
  const outcomes: PackageMerge[] = [];
  let pull: PullRequest | undefined;
  let state: UserMergeState | undefined;
  const late: SluiceError[] = [];
  for (const one of wanted) {
    signal.throwIfAborted();
    if (late.length >= MAX_LATE) break;
    const { path } = one;
    if (one.after === undefined) {
      outcomes.push({ path, result: 'removed' });
      continue;
    }
    const { package: name } = keyAt({ repository, workspace: '' }, path);
    const workspace = mergeWorkspace(repository, { package: name, base: mergeWorkspaceOf(listed.number), commit });
    const key = keyAt({ repository, workspace }, path);
    let outcome: PackageMerge;
    const problem = one.problem ?? (await mergedPackageProblem(repository, { ...key, commit }));
    if (problem !== undefined) outcome = { path, result: 'not_published', reason: problem };
    else {
      if (pull === undefined || state === undefined) {
        pull = await forge.get(listed.number, signal);
        if (pull.merged?.commit !== commit) return 'missing';
        state = await readState(forge, pull, signal);
      }
      const how = { state, read, mayBeLate: !isPassedOver(wait) };
      const published = await publishPackage(context, { ...one, after: one.after, key }, pull, how);
      if (published instanceof SluiceError) {
        late.push(published);
        continue;
      }
      outcome = published;
    }
    if (outcome.result !== 'not_published') await context.onPublished(outcome);
    outcomes.push(outcome);
  }
  if (late[0] !== undefined) throw late[0];
  // Another process may have published them: the ledger that they share has that before the refs are read again.
  if (outcomes.some(({ result }) => result === 'not_published')) await repository.catchUp(signal);
  const packages: PackageMerge[] = [];
  for (const one of outcomes) {
    const isOpen = one.result === 'not_published';
    const before = isOpen ? await publishedAt(repository, one.path, commit) : undefined;
    if (before === undefined) packages.push(one);
    else known.push(before);
  }
  for (const { path, isThere, what } of read.leftOut) {
    const how = await publicationOf(
      context,
      { path, after: undefined, hasKptfile: isThere, isShown: true },
      { ...listed, commit },
    );
    const reason =
      what === undefined
        ? 'its branch changes too many files, or files with too long paths or in malformed folders, to find out whether the host has left out some; open another pull request with what is missing'
        : `the host has left out ${what} of its branch; open another pull request with what is missing`;
    if (how !== undefined) packages.push({ path, result: 'left_out', reason });
  }
  const unknown = (await mayPublish(context, { ...listed, commit })) ? read.unknown : undefined;
  return { packages, known, unknown };
}

/**
 * The publication of a package at the commit of a merge, whichever pull request with this commit it is of. Any user who may push can push a tag there,
 * also with the workspace of the merge: it counts only if Sluice has made it, or an operator has adopted it.
 */
async function publishedAt(
  repository: PackageRepository,
  path: string,
  commit: string,
): Promise<PackageMerge | undefined> {
  const { package: name } = keyAt({ repository, workspace: '' }, path);
  for (const one of repository.index.ofPackage(name)) {
    if (one.commit !== commit || !isPublished(one) || isPlaceholder(one)) continue;
    const counts = one.outOfBand === undefined || (await recordedBypass(one, repository.trust)) !== undefined;
    // A key that is revoked since does not undo it.
    if (counts || wasPublished(repository, name, commit)) return outcomeOf(path, one);
  }
  return undefined;
}

function outcomeOf(path: string, revision: PackageRevision, refusal?: string): PackageMerge {
  const { outOfBand } = revision;
  if (outOfBand === undefined) return { path, result: 'published', revision };
  return { path, result: 'out_of_band', revision, refusal: refusal ?? outOfBand.message };
}

interface Publication {
  /** Why it is not published. */
  readonly problem?: string;
}

const NOT_SHOWN =
  'the commits that changed it on the main branch are not surely of this branch, but can be of another user; change it in another pull request, or propose a draft of it';
const NO_FILE = 'its Kptfile is a symbolic link or a submodule, so that it is no package; replace it by a file';

/** Whether one of the policies lets merges publish since before this one. */
async function mayPublish(
  { repository, allMergesSince }: Pick<UserMergeContext, 'repository' | 'allMergesSince'>,
  pull: PullRequest & { readonly commit: string },
): Promise<boolean> {
  for (const since of allMergesSince) if (!(await isMergedBefore(repository, pull, since))) return true;
  return false;
}

/**
 * Undefined if no policy lets the merge publish the package, or none did when it was merged. Where it is unknown which policy applies, as labels in
 * the Kptfile can effect, the merge must not pass unseen.
 */
async function publicationOf(
  context: UserMergeContext,
  { path, after, hasKptfile, isShown }: Pick<PackageAtMerge, 'path' | 'after' | 'hasKptfile' | 'isShown'>,
  pull: PullRequest & { readonly commit: string },
): Promise<Publication | undefined> {
  const { repository, mergesSince } = context;
  const { git } = repository;
  const [kptfile] = !hasKptfile ? [] : await git.statObjects([`${pull.commit}:${path}/Kptfile`]);
  const isRead = kptfile !== undefined && kptfile.size <= MAX_KPTFILE_BYTES;
  const [file] = isRead ? await git.readObjects([kptfile.oid]) : [];
  const read = file?.type === 'blob' ? readKptfile(file.data) : undefined;
  const { review, reviewProblem } = policyAt(repository, path, read?.ok === true ? read.kptfile : undefined);
  if (review !== undefined) {
    const since = review.publishOn !== 'approval' && isChecked(review) ? mergesSince(review) : undefined;
    if (since === undefined || (await isMergedBefore(repository, pull, since))) return undefined;
    if (!isShown) return { problem: NOT_SHOWN };
    return after === undefined || hasKptfile ? {} : { problem: NO_FILE };
  }
  return reviewProblem !== undefined && (await mayPublish(context, pull)) ? { problem: reviewProblem } : undefined;
}

/** Returns why it is to be tried again where it `mayBeLate`. */
async function publishPackage(
  context: UserMergeContext,
  { path, before, after, isOfHead, key }: PackageAtMerge & { readonly after: string; readonly key: RevisionKey },
  pull: PullRequest,
  {
    state,
    read: { isPushed, line, main },
    mayBeLate,
  }: {
    readonly state: UserMergeState;
    readonly read: Pick<PackagesAtMerge, 'isPushed' | 'line' | 'main'>;
    readonly mayBeLate: boolean;
  },
): Promise<PackageMerge | SluiceError> {
  const { store, repository, clock, signal } = context;
  const { git, namespace } = repository;
  const { commit = '' } = pull.merged ?? {};
  // Only the merged files are judged: what the main branch had before is no longer there.
  const judged = await judgePackage(await mergePackage(git, { base: before, main: before, head: after }), {
    ...{ namespace, mayIssue: isPushed, isOfHead, now: clock.now(), signal },
    renderer: isPushed ? context.renderer : context.restrictedRenderer,
    branch: line && { line, path },
    policyFor: (kptfile) => policyAt(repository, path, kptfile),
  });
  // A machine that has much to do does not make a package invalid. It concerns no other merge, as a `Timeout` of a host can.
  const timeout = mayBeLate ? judged.findings.find(({ code }) => code === 'Timeout') : undefined;
  if (timeout !== undefined) return new SluiceError('LimitExceeded', `${path}/${timeout.file}: ${timeout.message}`);
  const approved = await approvalsOf(context, { path, commit, main, name: revisionName(key) }, pull, judged, state);
  const reason = mergeText(pull);
  const facts = {
    conditions: mergedConditions(path, judged.findings, pull, approved.changesRequested),
    ...{ rendering: countedRendering(judged.rendering), mayIssue: isPushed, isOfHead, earlier: judged.earlier },
  };
  const publish = (attempt: MergeAttempt) => {
    const { by: approver } = attempt;
    const notApproved = approver === undefined ? `${reason}, ${approved.missing}` : undefined;
    const merged = mergedProposal(pull, attempt, notApproved);
    const wanted = { package: key.package, workspace: key.workspace, merged, facts };
    const request = { ...requestInName(attempt, reason, pull.url), signal };
    return store.publishMerged(repository.id, wanted, approver?.evidence ?? pull.url, request);
  };
  // Without it each request would be refused as if the kernel had decided, which would settle the merge.
  repository.trust.expectOwnKey();
  try {
    const published = await publishInName(approved.approvals, publish);
    if (published.result === 'not_published')
      return { path, result: 'not_published', reason: published.refusal.message };
    const { published: revision } = published;
    if (revision === undefined) return { path, result: 'not_published', reason: 'the revision was deleted meanwhile' };
    return outcomeOf(path, revision, published.result === 'published' ? undefined : published.refusal.message);
  } catch (error) {
    if (!isSluiceError(error) || !FINAL.has(error.code)) throw error;
    return { path, result: 'not_published', reason: error.message };
  }
}

/** Failures that a repetition does not change. */
const FINAL: ReadonlySet<string> = new Set(['InvalidInput', 'LimitExceeded']);

/**
 * The users who stand behind a package, the one who merged first: that user where the policy has merges publish, and those who approved its content in
 * reviews. All need the same right as for an approval through the API.
 */
async function approvalsOf(
  { repository, teamsOf, mayApprove, signal }: UserMergeContext,
  { path, commit, main, name }: Readonly<Record<'path' | 'commit' | 'main' | 'name', string>>,
  pull: PullRequest,
  { review, gates }: Pick<JudgedPackage, 'review' | 'gates'>,
  { reviews: all, ...merged }: UserMergeState,
): Promise<{
  readonly approvals: readonly UserApproval[];
  readonly missing: string;
  readonly changesRequested: readonly Review[] | undefined;
}> {
  const approvers = review?.approvers ?? [];
  const reviews = all && reviewsUntilMerge(all, pull);
  const content = (await contentAt(repository.git, `${commit}:${path}`)) ?? '';
  const reviewed = ofUserPull(repository.git, { path, main, content, gates }, signal);
  const counted = (commits: readonly string[]) => commitsThatCount(repository.git, reviewed, commits);
  const current = await counted(approvedCommits(reviews ?? [], approvers));
  const verdicts = evaluateReviews(reviews ?? [], approvers, (one) => current.has(one));
  const isCurrent = async (one: string) => (await counted([one])).has(one);
  const merge: Awaited<ReturnType<typeof mergeAsApproval>> =
    review?.publishOn === 'merge' ? await mergeAsApproval(pull, merged, { approvers, isCurrent }) : { candidates: [] };
  const candidates = [...merge.candidates, ...reviewsAsCandidates(verdicts)];
  const key = { namespace: repository.namespace, name };
  const { approvals, refused } =
    review === undefined
      ? { approvals: [], refused: [] }
      : await approvalsAtMerge({ forge: teamsOf(review), mayApprove, signal }, review, candidates, key);
  const changesRequested = reviews === undefined ? undefined : verdicts.changesRequested;
  const missing =
    refused.length > 0
      ? `but ${noRightText(refused)}`
      : merge.uncounted !== undefined
        ? `but ${merge.uncounted}`
        : review?.publishOn === 'merge'
          ? `whom spec.review.approvers of the policy ${review.policy} does not list, and no user whom it lists approved this content`
          : 'and no user whom spec.review.approvers of the policy lists approved this content in a review';
  return { approvals, missing, changesRequested };
}

/** `reviews` is undefined where there are too many, which closes the gate for them. */
type UserMergeState = Omit<MergedState, 'reviews'> & { readonly reviews: MergedState['reviews'] | undefined };

async function readState(forge: Forge, pull: PullRequest, signal: AbortSignal): Promise<UserMergeState> {
  try {
    return await forge.mergedState(pull, signal);
  } catch (error) {
    if (!isSluiceError(error, 'LimitExceeded')) throw error;
    const { closedAt: at = pull.updatedAt } = pull;
    // It may have been scheduled too.
    return { reviews: undefined, scheduled: { by: undefined, at, commit: undefined } };
  }
}

function policyAt(repository: PackageRepository, path: string, kptfile: Kptfile | undefined): EffectivePolicy {
  const key = keyAt({ repository, workspace: '' }, path);
  const name = revisionName(key);
  return repository.policyFor({ key, name, namespace: repository.namespace, path, kptfile, record: undefined });
}
