import { conditionsOf, type Kptfile, readKptfile } from '../../../../kptfile-schema/index.ts';
import { yieldToEventLoop } from '../../../foundation/concurrency/in-slices.ts';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import {
  type BranchCommit,
  findPushes,
  type PublishedTip,
  type PushHistory,
  publishedRecord,
  RecordReplay,
} from '../../kernel/replay-record.ts';
import type { PackageContent } from '../../model/content/content.ts';
import { type PackageInputs, UNKNOWN_INPUTS } from '../../model/content/inputs.ts';
import { unreadableReason } from '../../model/content/unreadable-content.ts';
import { signerOf } from '../../model/policy/people.ts';
import { bindsContent } from '../../model/policy/policy.ts';
import { parseCommitMessage } from '../../model/record/commit-message.ts';
import type { RevisionRecord } from '../../model/record/record.ts';
import { isPublished, type PackageRevision } from '../../model/revision/package-revision.ts';
import type { RepositoryContext } from '../ports/repository-context.ts';
import { withHostPushers } from './host-pushers.ts';

type RecordSources = Pick<
  RepositoryContext,
  'git' | 'index' | 'content' | 'policyFor' | 'clock' | 'layout' | 'trust' | 'namespace' | 'repository'
>;

/**
 * Returns the record of a revision at its tip, including later pushes. Published revisions have theirs in the approval
 * commit. `content` is undefined if the package cannot be read; then no condition is valid.
 */
export async function currentRecord(
  repo: RecordSources,
  revision: PackageRevision,
  content: PackageContent | undefined,
): Promise<RevisionRecord> {
  const { record, commit, lifecycle } = revision;
  const { time } = revision.tip;
  if (isPublished(revision)) return publishedRecord(publishedTipOf(revision), content ?? UNKNOWN_INPUTS);
  const policy = repo.policyFor(revision);
  const { people, hostUsers } = policy;
  // The host may report on pushes that were recorded before.
  if (record?.commit === commit) return withHostPushers(repo, revision, record, hostUsers);
  const history = await pushesOf(repo, revision);
  const isRecordDistrusted = revision.recordDistrust !== undefined;
  const replay = new RecordReplay({ ...{ commit, time, lifecycle, isRecordDistrusted } }, history, {
    bindsContent: (type) => bindsContent(policy, type),
    now: repo.clock.now(),
  });
  for (const point of history.pushed) {
    const signed = { oid: point.commit, time: point.time };
    const signer = replay.isAttributable ? await signerOf(repo.git, signed, people, repo.clock.now()) : undefined;
    const isTip = point.commit === commit;
    // A Kptfile that cannot be read has no conditions, so that the package need not be read.
    const isRead = !isTip && point.kptfile !== undefined;
    const inputs = isRead ? await inputsAt(repo, earlier(revision, point)) : content;
    replay.apply(point, signer, inputs ?? UNKNOWN_INPUTS);
  }
  return withHostPushers(repo, revision, replay.end(), hostUsers);
}

function publishedTipOf({ commit, tip, outOfBand, record, kptfile }: PackageRevision): PublishedTip {
  const conditions = kptfile === undefined ? new Map() : conditionsOf(kptfile);
  return { commit, time: tip.time, facts: tip.facts, isInBand: outOfBand === undefined, record, conditions };
}

/** One commit on the branch of a draft, with what is needed to read its package. */
interface Point extends BranchCommit {
  readonly tree: Oid | undefined;
  readonly kptfileBlob: Oid | undefined;
  readonly kptfile: Kptfile | undefined;
}

async function pushesOf(repo: RecordSources, revision: PackageRevision): Promise<PushHistory<Point, PackageRevision>> {
  const publications = repo.index.ofPackage(revision.key.package).filter(
    // Content that was published without Sluice counts as that of its pusher.
    ({ revision: number, outOfBand }) => number > 0 && outOfBand === undefined,
  );
  const tip = { commit: revision.commit, time: revision.tip.time };
  const publicationOf = (tree: Oid) => publications.find((other) => other.tip.tree === tree);
  const pushes = findPushes<Point, PackageRevision>(tip, revision.record, publicationOf);
  let point: Point | undefined;
  let next = pushes.next();
  while (next.done !== true) {
    point = await pointAt(repo, revision, next.value, point);
    next = pushes.next(point);
  }
  const history = next.value;
  const { start, source } = history;
  if (source === undefined) return history;
  const inputs = await inputsAt(repo, source);
  const { verdicts } = publishedRecord(publishedTipOf(source), inputs ?? UNKNOWN_INPUTS);
  return { ...history, start: { ...start, verdicts } };
}

/** Returns the revision at another commit, with the fields for reading its package. */
function earlier(revision: PackageRevision, { commit, tree, kptfileBlob, kptfile }: Point): PackageRevision {
  const { etag, outOfBand } = revision;
  return { ...revision, etag, outOfBand, commit, kptfile, tip: { ...revision.tip, tree, kptfileBlob } };
}

/** Undefined where the history is cut off. */
async function pointAt(
  repo: RecordSources,
  revision: PackageRevision,
  oid: Oid,
  child: Point | undefined,
): Promise<Point | undefined> {
  const { path } = revision;
  const [tree, kptfile] = await repo.git.statObjects([`${oid}:${path}`, `${oid}:${path}/Kptfile`]);
  try {
    const commit = await repo.git.readCommit(oid);
    const blob = kptfile?.oid;
    const read =
      child !== undefined && child.kptfileBlob === blob ? child.kptfile : await kptfileOf(repo, revision, blob);
    return {
      commit: oid,
      time: commit.committer.time,
      parent: commit.parents[0],
      isBySluice: parseCommitMessage(commit.message).action !== undefined,
      tree: tree?.type === 'tree' ? tree.oid : undefined,
      kptfileBlob: blob,
      kptfile: read,
      conditions: read === undefined ? undefined : conditionsOf(read),
    };
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

async function kptfileOf(
  repo: RecordSources,
  revision: PackageRevision,
  blob: Oid | undefined,
): Promise<Kptfile | undefined> {
  if (blob === undefined) return undefined;
  // The index has read the one at the tip, once for all requests.
  if (blob === revision.tip.kptfileBlob) return revision.kptfile;
  try {
    const [object] = await repo.git.readObjects([blob]);
    // One that a push brought may take tens of milliseconds, and there may be one for each commit.
    await yieldToEventLoop();
    const result = object?.type === 'blob' ? readKptfile(object.data) : undefined;
    return result?.ok === true ? result.kptfile : undefined;
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}

/** Returns the inputs of a package; undefined if it cannot be read, so that no verdict is valid for it. */
async function inputsAt(repo: RecordSources, revision: PackageRevision): Promise<PackageInputs | undefined> {
  try {
    return await repo.content(revision);
  } catch (error) {
    if (unreadableReason(error) !== undefined) return undefined;
    throw error;
  }
}
