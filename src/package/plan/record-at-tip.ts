import { type Condition, conditionsOf, type Kptfile, readKptfile } from '../../../kptfile-schema/index.ts';
import { timestamp } from '../../foundation/clock.ts';
import { yieldToEventLoop } from '../../foundation/in-slices.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Oid } from '../../git/git-repository.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { parseCommitMessage, publishedRecordOf } from '../model/commit-message.ts';
import type { PackageContent } from '../model/content.ts';
import { type PackageInputs, UNKNOWN_INPUTS } from '../model/inputs.ts';
import { isPublished, type PackageRevision } from '../model/package-revision.ts';
import { signerOf } from '../model/people.ts';
import { bindsContent } from '../model/policy.ts';
import { emptyRecord, type RevisionRecord, withContributor, withStep } from '../model/record.ts';
import { PUSH_ACTOR, recordAfterPush, syncVerdicts } from '../model/verdict.ts';
import { withHostPushers, withUnknownPusher } from './host-pushers.ts';
import type { Workbench } from './workbench.ts';

type Bench = Pick<
  Workbench,
  'git' | 'index' | 'content' | 'policyFor' | 'clock' | 'layout' | 'trust' | 'namespace' | 'repository'
>;

/** Commits that are looked through for the one that brought a condition. More arrive at once only where history is rewritten. */
const MAX_WALK = 100;

/**
 * The record of a revision as it stands for its tip, pushes since included. Published revisions carry theirs in the approval
 * commit. `content` is undefined where the package cannot be read; then no condition holds for anything.
 */
export async function currentRecord(
  bench: Bench,
  revision: PackageRevision,
  content: PackageContent | undefined,
): Promise<RevisionRecord> {
  const { record } = revision;
  if (isPublished(revision)) return publishedRecord(revision, content ?? UNKNOWN_INPUTS);
  const policy = bench.policyFor(revision);
  const { people, hostUsers } = policy;
  // The host may report on pushes that were recorded before.
  if (record?.commit === revision.commit) return withHostPushers(bench, revision, record, hostUsers);
  const { start, before, pushed, isWhole } = await pushesOf(bench, revision);
  let next = start;
  let known = before;
  let pusher = PUSH_ACTOR;
  // Who changed a draft before its record was lost is not known any more, and anyone can write that Sluice made a commit.
  if (revision.recordDistrust !== undefined || !isWhole)
    next = pushedByUnknown(next, { time: revision.tip.time, oid: revision.commit }, false);
  // A signature says who made a commit. Who takes a branch back to a commit that somebody signed long ago is not known.
  const binds = (type: string) => bindsContent(policy, type);
  const isAttributable = isWhole && revision.recordDistrust === undefined;
  for (const point of pushed) {
    const commit = { oid: point.commit, time: point.time };
    const signer = isAttributable ? await signerOf(bench.git, commit, people, bench.clock.now()) : undefined;
    pusher = signer ?? PUSH_ACTOR;
    const context = contextOf(pusher);
    // A commit that is older than what is known of this draft was signed for another one.
    const isForThis = start.recordedAt !== undefined && point.time >= Date.parse(start.recordedAt);
    const giver = isForThis ? context : contextOf(PUSH_ACTOR);
    next =
      signer === undefined
        ? pushedByUnknown(next, commit, isAttributable)
        : contributed(next, context, point.time, point.commit);
    if (point.kptfile === undefined) continue;
    const conditions = conditionsOf(point.kptfile);
    const inputs = point.commit === revision.commit ? content : await inputsAt(bench, earlier(revision, point));
    next = syncVerdicts(
      next,
      { conditions, known, bindsContent: binds },
      inputs ?? UNKNOWN_INPUTS,
      giver,
      // A pusher chooses the time of a commit; a verdict must not count for longer by it.
      timestamp(Math.min(point.time, bench.clock.now())),
    );
    known = conditions;
  }
  if (next.steps.at(-1)?.action === 'propose') {
    // What was pushed since is nobody's proposal.
    const at = timestamp(revision.tip.time);
    next = withStep(next, { action: 'push', by: pusher, face: 'git', at, commit: revision.commit });
  }
  // The gates that the proposal required went with the record.
  if (revision.recordDistrust !== undefined && revision.lifecycle === 'Proposed')
    next = { ...next, proposal: { gates: [], lost: true } };
  return withHostPushers(bench, revision, { ...next, commit: revision.commit }, hostUsers);
}

function contextOf(name: string): RequestContext {
  return { actor: { name }, face: 'git' };
}

function contributed(record: RevisionRecord, context: RequestContext, time: number, commit: Oid): RevisionRecord {
  const known = record.contributors ?? [];
  const contributors = withContributor(known, context, timestamp(time), commit);
  return contributors.length === known.length ? record : { ...record, contributors };
}

/** `isListed`: the commit is known to be what an unknown person added, so that the Git host can still report who it was. */
function pushedByUnknown(
  record: RevisionRecord,
  { time, oid }: { readonly time: number; readonly oid: Oid },
  isListed: boolean,
): RevisionRecord {
  const known = record.contributors ?? [];
  const push = { since: timestamp(time), tip: oid, commit: isListed ? oid : undefined };
  const contributors = withUnknownPusher(known, push);
  return contributors === known ? record : { ...record, contributors: [...contributors] };
}

function publishedRecord(revision: PackageRevision, inputs: PackageInputs): RevisionRecord {
  const folded = publishedRecordOf(revision.tip.facts);
  // A tag that did not come through the kernel can say anything.
  if (folded !== undefined && revision.outOfBand === undefined) {
    const kept = revision.record ?? { version: 1, commit: revision.commit };
    // A record that was written after publication goes on where the approval commit ends.
    const steps = 'steps' in kept && kept.steps.length > 0 ? kept.steps : folded.steps;
    return { ...kept, verdicts: [...folded.verdicts], steps: [...steps] };
  }
  const conditions = revision.kptfile === undefined ? new Map() : conditionsOf(revision.kptfile);
  const { commit, tip } = revision;
  const madeBySluice = tip.facts.action !== undefined;
  return recordAfterPush(revision.record, { commit, madeBySluice, time: timestamp(tip.time) }, conditions, inputs);
}

/** One commit on the branch of a draft. */
interface Point {
  readonly commit: Oid;
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly parent: Oid | undefined;
  readonly madeBySluice: boolean;
  /** Undefined before the package came into being. */
  readonly tree: Oid | undefined;
  readonly kptfileBlob: Oid | undefined;
  /** Undefined if there is none or it cannot be read, which says nothing about conditions. */
  readonly kptfile: Kptfile | undefined;
}

interface Pushes {
  /** What was recorded before them. */
  readonly start: RevisionRecord;
  /** Conditions that were there before; undefined if only the record tells. */
  readonly before: ReadonlyMap<string, Condition> | undefined;
  /** Commits that others made since, oldest first. */
  readonly pushed: readonly Point[];
  /** False where the history was rewritten, so that `pushed` is not all that led there. */
  readonly isWhole: boolean;
}

/**
 * The pushes since a record was written. Where there is none, they begin with the package, or with what was published and branched
 * off; behind a commit of Sluice itself the record was lost, and who gave its conditions for what is not known any more.
 */
async function pushesOf(bench: Bench, revision: PackageRevision): Promise<Pushes> {
  const { record } = revision;
  const siblings = bench.index.ofPackage(revision.key.package).filter(
    // What others published counts as content of its pusher.
    ({ revision: number, outOfBand }) => number > 0 && outOfBand === undefined,
  );
  const pushed: Point[] = [];
  let oid: Oid | undefined = revision.commit;
  while (oid !== undefined && pushed.length < MAX_WALK) {
    const point: Point | undefined = await pointAt(bench, revision, oid, pushed.at(-1));
    if (point?.tree === undefined) break;
    const before = () => (point.kptfile === undefined ? new Map() : conditionsOf(point.kptfile));
    if (record !== undefined) {
      if (record.commit === oid) return { start: record, before: before(), pushed: pushed.reverse(), isWhole: true };
    } else {
      const source = siblings.find(({ tip }) => tip.tree === point.tree);
      if (source !== undefined || point.madeBySluice) {
        const inputs = source === undefined ? undefined : await inputsAt(bench, source);
        const verdicts = source === undefined ? [] : publishedRecord(source, inputs ?? UNKNOWN_INPUTS).verdicts;
        const createdAt = timestamp((pushed.at(-1) ?? point).time);
        // Anyone can write the trailers of Sluice: who made this commit is known only with a record.
        const unknown = { name: PUSH_ACTOR, face: 'git', since: createdAt, commit: oid };
        const contributors = source === undefined ? [unknown] : [];
        const start = { ...emptyRecord(oid), verdicts, createdAt, contributors };
        return { start, before: before(), pushed: pushed.reverse(), isWhole: source !== undefined };
      }
    }
    pushed.push(point);
    oid = point.parent;
  }
  if (record === undefined) {
    const createdAt = timestamp(pushed.at(-1)?.time ?? revision.tip.time);
    const start = { ...emptyRecord(revision.commit), createdAt };
    return { start, before: new Map(), pushed: pushed.reverse(), isWhole: pushed.length < MAX_WALK };
  }
  // The history was rewritten: it came as one.
  return { start: record, before: undefined, pushed: pushed.slice(0, 1), isWhole: false };
}

/** The revision as it was at another commit, as far as reading its package goes. */
function earlier(revision: PackageRevision, { commit, tree, kptfileBlob, kptfile }: Point): PackageRevision {
  const { etag, outOfBand } = revision;
  return { ...revision, etag, outOfBand, commit, kptfile, tip: { ...revision.tip, tree, kptfileBlob } };
}

/** Undefined where the history is cut off. */
async function pointAt(
  bench: Bench,
  revision: PackageRevision,
  oid: Oid,
  child: Point | undefined,
): Promise<Point | undefined> {
  const { path } = revision;
  const [tree, kptfile] = await bench.git.statObjects([`${oid}:${path}`, `${oid}:${path}/Kptfile`]);
  try {
    const commit = await bench.git.readCommit(oid);
    return {
      commit: oid,
      time: commit.committer.time,
      parent: commit.parents[0],
      madeBySluice: parseCommitMessage(commit.message).action !== undefined,
      tree: tree?.type === 'tree' ? tree.oid : undefined,
      kptfileBlob: kptfile?.oid,
      kptfile:
        child !== undefined && child.kptfileBlob === kptfile?.oid
          ? child.kptfile
          : await kptfileOf(bench, revision, kptfile?.oid),
    };
  } catch (error) {
    if (isSluiceError(error, 'NotFound') || isSluiceError(error, 'Corrupt')) return undefined;
    throw error;
  }
}

async function kptfileOf(bench: Bench, revision: PackageRevision, blob: Oid | undefined): Promise<Kptfile | undefined> {
  if (blob === undefined) return undefined;
  // The index has read the one at the tip, once for all requests.
  if (blob === revision.tip.kptfileBlob) return revision.kptfile;
  try {
    const [object] = await bench.git.readObjects([blob]);
    // One that a push brought may take tens of milliseconds, and there may be one for each commit.
    await yieldToEventLoop();
    const result = object?.type === 'blob' ? readKptfile(object.data) : undefined;
    return result?.ok === true ? result.kptfile : undefined;
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}

/** A package; undefined if it cannot be read, so that nothing was given for it. */
async function inputsAt(bench: Bench, revision: PackageRevision): Promise<PackageInputs | undefined> {
  try {
    return await bench.content(revision);
  } catch (error) {
    if (isSluiceError(error, 'LimitExceeded')) return undefined;
    throw error;
  }
}
