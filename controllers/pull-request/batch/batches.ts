import { isDeepStrictEqual } from 'node:util';
import type { ReconcileResult } from '../../../src/controller/reconciler.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import { keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { REPLY, writeComment } from '../commands/apply-commands.ts';
import { describeSharedCommands } from '../commands/describe-commands.ts';
import type { HostFailures } from '../host-failures.ts';
import { openPull } from '../opening/open-pull.ts';
import { pauseAfter } from '../pause-after.ts';
import type { PullRequests } from '../pull-requests.ts';
import { repositoryOf, type ShownProposals } from '../shown-proposals.ts';
import { inlineCode } from '../text/quote.ts';
import { isPreparedIn, proposalId, proposalsIn, withSection } from '../text/section.ts';
import { writeChecks, writePull } from '../writing/write-pull.ts';
import { membersAt, removeBatchBranch, updateBatchBranch } from './batch-branch.ts';
import { batchChecks } from './batch-checks.ts';
import type { BatchMember } from './batch-member.ts';
import { batchBranch, batchPrefix } from './batch-name.ts';
import { describeBatch, describeBatchEnd } from './describe-batch.ts';
import { type Batch, planBatches } from './plan-batches.ts';

export interface BatchesOptions {
  readonly store: Pick<RevisionStore, 'find' | 'list' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly failures: HostFailures;
  readonly shown: ShownProposals;
  readonly clock: Clock;
  enqueue(key: ObjectKey): void;
}

/** The batches of one repository, of the proposals that are known so far. */
interface Known {
  readonly sinceMs: number;
  /** By key as text. */
  readonly members: Map<string, { readonly member: BatchMember; readonly pulls: PullRequests }>;
  /** Proposals with a pull request of their own. */
  readonly apart: Set<string>;
  /** Where there may be batches. */
  readonly pulls: Set<PullRequests>;
  /** Branches that this process has written. */
  readonly written: Set<string>;
  /** When they may be written next, milliseconds since the epoch. */
  notBeforeMs: number;
}

/** Many proposals change at once: their pull requests are written together. */
const PAUSE_MS = 2000;
/** After a start, batches wait at most so long for members that cannot be read. */
const MAX_UNREAD_MS = 60_000;
const UNREAD_RETRY_MS = 1000;
const SUFFIX = ':batches';

/** The key of the batches of a repository in the work queue: no object has such a name. */
export function batchesKey({ namespace, name }: ObjectKey): ObjectKey {
  return { ...(namespace === undefined ? {} : { namespace }), name: `${name}${SUFFIX}` };
}

export function isBatchesKey({ name }: ObjectKey): boolean {
  return name.endsWith(SUFFIX);
}

/**
 * The pull requests that several proposals share. Each proposal is reconciled by itself, reports here what its pull request shows of it, and
 * takes over what is decided there; this class has the branch, the text and the checks of the whole.
 */
export class Batches {
  readonly #options: BatchesOptions;
  /** By repository. */
  readonly #known = new Map<string, Known>();
  /** Keys of members whose pull request could not be written. */
  readonly #failed = new Set<string>();

  constructor(options: BatchesOptions) {
    this.#options = options;
  }

  /** Hosts that the batches of a repository use. */
  pullsOf(repository: ObjectKey): Iterable<PullRequests> {
    return this.#known.get(keyText(repository))?.pulls ?? [];
  }

  /** The pull request that a proposal is in, the open one first; undefined if there is none. */
  async pullOf(pulls: PullRequests, proposed: PackageRepository, proposal: string, signal: AbortSignal) {
    const found: PullRequest[] = [];
    for (const pull of await pulls.withPrefix(batchPrefix(proposed.id), signal))
      if ((await proposalsOf(pull, proposed)).includes(proposal)) found.push(pull);
    return found.find(({ state }) => state === 'open') ?? found.at(-1);
  }

  /** Takes over what a proposal shows. */
  report(member: Omit<BatchMember, 'seenMs'>, pulls: PullRequests): void {
    const repository = repositoryOf(member.key);
    const known = this.#known.get(keyText(repository)) ?? {
      ...{ sinceMs: this.#options.clock.now(), members: new Map(), apart: new Set<string>(), notBeforeMs: 0 },
      ...{ pulls: new Set<PullRequests>(), written: new Set<string>() },
    };
    this.#known.set(keyText(repository), known);
    known.pulls.add(pulls);
    known.apart.delete(member.proposal);
    const before = known.members.get(keyText(member.key));
    const isSame = before?.member.proposal === member.proposal;
    const seenMs = isSame ? before.member.seenMs : this.#options.clock.now();
    const now = { member: { ...member, seenMs }, pulls };
    known.members.set(keyText(member.key), now);
    if (!isDeepStrictEqual(shownOf(before?.member), shownOf(now.member))) this.wake(repository);
  }

  /** A proposal has ended, or has a pull request of its own, which is stated by `proposal`. */
  withdraw(key: ObjectKey, proposal?: string): void {
    const repository = repositoryOf(key);
    const known = this.#known.get(keyText(repository));
    this.#failed.delete(keyText(key));
    if (proposal !== undefined) known?.apart.add(proposal);
    if (known?.members.delete(keyText(key)) === true) this.wake(repository);
  }

  /** Whether the pull request of a proposal could not be written. */
  hasFailed(key: ObjectKey): boolean {
    return this.#failed.has(keyText(key));
  }

  wake(repository: ObjectKey): void {
    if (this.#known.has(keyText(repository))) this.#options.enqueue(batchesKey(repository));
  }

  async reconcile({ namespace, name }: ObjectKey, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const { clock } = this.#options;
    const repository = { ...(namespace === undefined ? {} : { namespace }), name: name.slice(0, -SUFFIX.length) };
    const known = this.#known.get(keyText(repository));
    if (known === undefined) return undefined;
    const pauseMs = known.notBeforeMs - clock.now();
    if (pauseMs > 0) return { requeueAfter: pauseMs, reason: 'pull requests were written a moment ago' };
    const waits: number[] = [];
    for (const pulls of known.pulls) waits.push(...(await this.#reconcileOn(known, pulls, signal)));
    if (waits.length === 0) return undefined;
    return { requeueAfter: Math.min(...waits), reason: 'further proposals may follow' };
  }

  /** Returns after how many milliseconds to reconcile again. */
  async #reconcileOn(known: Known, pulls: PullRequests, signal: AbortSignal): Promise<readonly number[]> {
    const { store, clock, enqueue } = this.#options;
    const members = [...known.members.values()].flatMap((one) => (one.pulls === pulls ? one.member : []));
    const some = [...known.members.values()][0]?.member.revision ?? this.#last.get(pulls);
    if (some === undefined) return [];
    this.#last.set(pulls, some);
    const repository = store.repositoryOf(some);
    const all = await pulls.withPrefix(batchPrefix(repository.id), signal);
    const live = new Map(
      store
        .list({ repository: repository.id, lifecycle: 'Proposed' })
        .map(({ uid, record, namespace, name }) => [proposalId(uid, record?.steps ?? []), { namespace, name }]),
    );
    const read = new Map(members.map((one) => [one.proposal, one]));
    const open: PullRequest[] = [];
    const ended = new Map<string, number>();
    /** By branch: those that are still proposed there. */
    const listed = new Map<string, readonly string[]>();
    for (const pull of all) {
      const { number, state, head } = pull;
      const proposals = (await proposalsOf(pull, repository)).filter(
        (one) => live.has(one) && !known.apart.has(one) && read.get(one)?.left.includes(number) !== true,
      );
      listed.set(head.branch, proposals);
      if (state === 'open') open.push(pull);
      else for (const one of proposals) ended.set(one, number);
    }
    const unread = open.flatMap(({ head }) => listed.get(head.branch) ?? []).filter((one) => !read.has(one));
    if (unread.length > 0 && clock.now() - known.sinceMs < MAX_UNREAD_MS) {
      for (const one of unread) enqueue(live.get(one) ?? { name: '' });
      return [UNREAD_RETRY_MS];
    }
    const { batches, waitMs } = planBatches(
      // Those of a pull request that has ended are published, rejected or released by themselves.
      members.filter(({ proposal }) => !ended.has(proposal)),
      open.map(({ head: { branch } }) => ({ branch, proposals: listed.get(branch) ?? [] })),
      (founder) => batchBranch(repository.id, founder),
      clock.now(),
    );
    const waits = waitMs === undefined ? [] : [waitMs];
    for (const batch of batches)
      if (batch.members.length > 0) waits.push(...(await this.#show(known, pulls, repository, batch, signal)));
    for (const pull of all) {
      const isUsed = batches.some(({ branch, members: of }) => branch === pull.head.branch && of.length > 0);
      if (!isUsed && (listed.get(pull.head.branch) ?? []).length === 0)
        await this.#finish(known, pulls, repository, pull, signal);
    }
    if (members.length === 0 && (await pulls.withPrefix(batchPrefix(repository.id), signal)).length === 0)
      known.pulls.delete(pulls);
    return waits;
  }

  /** A revision of the repository of each host. */
  readonly #last = new WeakMap<PullRequests, BatchMember['revision']>();

  /** Brings one pull request up to date. What the host refuses is reported by its members. */
  async #show(
    known: Known,
    pulls: PullRequests,
    repository: PackageRepository,
    batch: Batch<BatchMember>,
    signal: AbortSignal,
  ): Promise<readonly number[]> {
    const { failures, clock } = this.#options;
    try {
      if (await this.#write(known, pulls, repository, batch, signal)) known.notBeforeMs = clock.now() + PAUSE_MS;
      for (const { key } of batch.members) if (this.#failed.delete(keyText(key))) failures.end(key);
      return [];
    } catch (error) {
      if (!isSluiceError(error) || ['Conflict', 'Busy'].includes(error.code)) throw error;
      for (const { key, object } of batch.members) {
        this.#failed.add(keyText(key));
        failures.report(object, messageOf(error));
      }
      // Users may delete pull requests: then there is another one the next time.
      if (error.code === 'NotFound') this.#options.shown.forget(pulls, batch.branch);
      const pause = pauseAfter(error);
      if (pause === undefined) throw error;
      return [pause];
    }
  }

  /** Returns whether anything was written. */
  async #write(
    known: Known,
    pulls: PullRequests,
    repository: PackageRepository,
    { branch, members: unsorted }: Batch<BatchMember>,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { store, events, shown, enqueue } = this.#options;
    const members = unsorted.toSorted((a, b) => (a.name < b.name ? -1 : 1));
    const [first] = members;
    if (first === undefined) return false;
    const { review } = first.described;
    const context = { store, events, signal };
    const proposals = members.map(({ proposal }) => proposal);
    const content = { branch, proposals, text: describeBatch(members, review), review };
    let pull = await pulls.ofBranch(branch, signal);
    const before = pull?.state === 'open' ? proposalsIn(pull.body) : undefined;
    // A proposal is listed before a merge can contain it.
    if (pull !== undefined && before !== undefined)
      await writePull(context, first.object, this.#entry(pulls, pull), pull, content);
    const { head, isPushed, foreign } = await updateBatchBranch(repository, branch, members, signal);
    known.written.add(branch);
    if (isPushed) pulls.notePush(branch);
    if (pull === undefined || before === undefined) pull = await openPull(context, members, pulls, content);
    else
      for (const { object, proposal } of members)
        if (!before.includes(proposal))
          events.record(object, 'Normal', 'PullRequestOpened', `it is reviewed in ${pull.url}`, 'opened');
    const about = { object: first.object, pull, forge: pulls.forge };
    if (foreign !== undefined) {
      const text = `The commit ${inlineCode(foreign.commit)} of ${inlineCode(foreign.by)} was taken back: this branch has what its packages propose, and Sluice writes it. Push to the branch of the package, or change a draft.`;
      await writeComment(context, about, 'pushed', text);
    }
    const entry = this.#entry(pulls, pull);
    const executed = new Map(entry.executed);
    for (const { name, commands } of members)
      if (commands?.source === pull.url)
        for (const one of commands.entries) executed.set(`${one.id} ${name}`, { name, executed: one });
    const reply = executed.size === 0 ? undefined : describeSharedCommands([...executed.values()]);
    if (reply !== undefined && reply !== entry.reply && (await writeComment(context, about, REPLY, reply)))
      entry.reply = reply;
    const hadText = entry.text;
    const hadChecks = entry.checks;
    await writeChecks(
      context,
      entry,
      head,
      batchChecks(members, pull.url),
      members.map(({ revision }) => revision),
    );
    await writePull(context, first.object, entry, (await pulls.ofBranch(branch, signal)) ?? pull, content);
    for (const { key } of members) if (shown.get(key)?.pull !== entry) enqueue(key);
    return isPushed || hadText !== entry.text || hadChecks !== entry.checks;
  }

  #entry(pulls: PullRequests, pull: PullRequest) {
    const entry = this.#options.shown.pullOf(pulls, pull.head.branch, pull.number);
    entry.isPrepared ??= isPreparedIn(pull.body);
    return entry;
  }

  /** None of its packages is proposed any more: the pull request says what became of them, and its branch is removed. */
  async #finish(
    known: Known,
    pulls: PullRequests,
    repository: PackageRepository,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, shown } = this.#options;
    const { branch, commit } = pull.head;
    const ref = `refs/heads/${branch}`;
    const isLeft = known.written.has(branch) || (await repository.git.resolveRef(ref)) !== undefined;
    if (pull.state === 'open' || isLeft) {
      const members = (await membersAt(repository.git, commit)) ?? [];
      const ended = members.map(({ name }) => ({
        name,
        revision: store.find(keyText({ namespace: repository.namespace, name })),
      }));
      const marked = proposalsIn(pull.body);
      const proposals = marked.length > 0 ? marked : members.map(({ proposal }) => proposal);
      const body = proposals.length === 0 ? pull.body : withSection(pull.body, proposals, describeBatchEnd(ended));
      const change = pull.state === 'open' ? { body, state: 'closed' as const } : { body };
      try {
        await pulls.forge.update(pull.number, change, signal);
      } catch (error) {
        // What only an operator can change does not matter any more.
        if (pauseAfter(error) === undefined) throw error;
      }
      await removeBatchBranch(repository, branch, signal);
    }
    known.written.delete(branch);
    shown.forget(pulls, branch);
  }
}

/** Where a user has removed the marker from the text, the commits of the branch have the proposals too. */
async function proposalsOf({ body, head }: PullRequest, { git }: PackageRepository): Promise<readonly string[]> {
  const marked = proposalsIn(body);
  if (marked.length > 0) return marked;
  return ((await membersAt(git, head.commit)) ?? []).map(({ proposal }) => proposal);
}

/** What decides whether a pull request has to be written. */
function shownOf(member: BatchMember | undefined) {
  if (member === undefined) return undefined;
  const { proposal, tree, described, annotations, policy, maxPackages, commands, left } = member;
  return { proposal, tree, described, annotations, policy, maxPackages, commands, left };
}
