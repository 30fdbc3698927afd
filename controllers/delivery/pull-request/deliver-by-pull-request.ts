import { isDeepStrictEqual } from 'node:util';
import { settingsOf } from '../../../src/delivery/delivery-target.ts';
import { normalizeDirectory } from '../../../src/delivery/path-rules.ts';
import { decidePull, type PullFacts, type PullWait } from '../../../src/delivery/pull-request/decide-pull.ts';
import type { Desired } from '../../../src/delivery/tree/desired-result.ts';
import type { Closing, Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import { isSluiceError, SluiceError, unlessMissing } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { Oid, Signature } from '../../../src/git/git-repository.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { dequeue } from '../../pull-request/merging/dequeue.ts';
import type { MergeAttempts } from '../../pull-request/merging/merge-attempts.ts';
import { plainLine } from '../../pull-request/text/quote.ts';
import { proposalsIn, withSection } from '../../pull-request/text/section.ts';
import type { TargetBranch } from '../branch/target-branch.ts';
import { contentOf, DeliveryBranch, deliveryBranchName, type ProposedDelivery } from './delivery-branch.ts';
import { ENDED, markOf, reopenedMark, wasReopened } from './delivery-marks.ts';
import {
  describeClosed,
  describeDeliveryPull,
  describeReopened,
  describeUnneeded,
  mergeTexts,
} from './describe-delivery-pull.ts';
import { type PullStatus, stateOf, statusOf } from './pull-status.ts';

/** Steps of one reconciliation; the longest sequence has four. */
const MAX_STEPS = 8;
/** Until a host that does not say whether a merge is possible is treated as if it was not: Gitea does not report conflicts. */
const UNKNOWN_MS = 60_000;
/** Where users merge, for so long, in milliseconds, whether that is possible is not read again. */
const MERGEABILITY_MS = 300_000;
/** For so long, in milliseconds, the host is not searched for another pull request of the branch, which takes many requests on some hosts. */
const SEARCH_MS = 900_000;

export interface PullDelivery {
  readonly target: Stored<DeliveryTarget>;
  readonly branch: TargetBranch;
  /** Head of the branch of the target. */
  readonly base: Oid;
  /** What the base lacks. */
  readonly result: Pick<Desired, 'edits' | 'message' | 'packages'>;
  readonly author: Signature;
  /** Called last of all before a merge. Without a permission nothing is merged. */
  readonly isPermitted: () => Promise<boolean>;
}

export interface PullContext {
  readonly forge: Forge;
  readonly events: EventDeduplicator;
  readonly clock: Clock;
  /** Since when the host does not say whether a head can be merged, by target. */
  readonly unknownSince: Map<string, { readonly head: Oid; readonly at: number }>;
  readonly attempts: MergeAttempts;
  readonly round: PullRound;
  /** The last one. */
  readonly before: PullRound | undefined;
  readonly signal: AbortSignal;
}

export interface PullOutcome {
  /** Undefined if the branch of the target has everything. */
  readonly wait?: { readonly for: PullWait; readonly message: string };
  /** The last pull request, if there was one. */
  readonly pullRequest: PullStatus | undefined;
  /** It was merged just now: the branch of the target has to be read again. */
  readonly isMerged?: boolean;
}

/** What a reconciliation has read last, and whether it has changed the branch or the pull request. */
export interface PullRound {
  pull?: PullRequest | undefined;
  mergeability?: PullFacts['mergeability'];
  /** When that was read from the host, in milliseconds of running time. */
  mergeabilityMs?: number;
  /** Head of the branch of the target. */
  base?: Oid;
  /** Head of the branch of the pull request. */
  head?: Oid | undefined;
  /** When the host was searched for `pull`, in milliseconds of running time; undefined if it was not, or is to be searched again. */
  searchedMs?: number | undefined;
  /** Of `pull`. */
  closing?: Closing | undefined;
  isWritten: boolean;
}

interface Seen {
  readonly pull: PullRequest | undefined;
  readonly head: Oid | undefined;
  readonly by: string;
  /** Of one that was rejected. */
  readonly closing: Closing | undefined;
  readonly facts: PullFacts;
  /** Whether it can be merged was not read again, or whether there is another one. */
  readonly isRemembered: boolean;
}

/**
 * Brings the branch and the pull request of a target to what is desired, and merges it if the target says so. Everything is read again
 * before each step, so that it can end anywhere and be repeated.
 */
export async function deliverByPullRequest(context: PullContext, delivery: PullDelivery): Promise<PullOutcome> {
  const { forge, events, attempts, round, signal } = context;
  const { target, branch, base, result, author } = delivery;
  const { git: place, pullRequest: wanted } = target.spec;
  if (wanted === undefined) throw new SluiceError('Internal', 'the target has no spec.pullRequest');
  const { namespace = DEFAULT_NAMESPACE, name } = target.metadata;
  const own = new DeliveryBranch(branch.git, branch.remote, deliveryBranchName({ namespace, name }));
  const directory = normalizeDirectory(place.directory);
  const tree = await branch.treeWith(base, result.edits);
  const proposed: ProposedDelivery = {
    base,
    tree,
    directory,
    message: result.message,
    target: settingsOf(target).name,
  };
  const content = await contentOf(branch.git, tree, directory);
  const key = keyText(keyOf(target));
  const id = markOf(key, content);
  const isPending = result.edits.size > 0;
  const text = describeDeliveryPull(target, result, own.name);

  for (let step = 1; step <= MAX_STEPS; step += 1) {
    let seen = await observe(step === 1);
    let next = decidePull(seen.facts);
    // Its queue is none of what shows that nothing has changed.
    if (next.do !== 'wait' && seen.isRemembered) {
      seen = await observe(false);
      next = decidePull(seen.facts);
    }
    const { pull, head } = seen;
    switch (next.do) {
      case 'nothing':
        return { pullRequest: pull === undefined ? target.status?.pullRequest : statusOf(pull) };
      case 'close':
        if (pull !== undefined) await close(pull);
        break;
      case 'remove-branch':
        round.isWritten = true;
        if (head !== undefined) await own.remove(head, signal);
        break;
      case 'push':
        if (head !== undefined && seen.facts.branch?.isOwn === false) {
          const message = `${own.name} was at ${head} by ${seen.by}, whose pull request has ended; it is set to what the target delivers now`;
          events.record(target, 'Warning', 'BranchReplaced', message, `branch ${head}`);
        }
        await push(head);
        break;
      case 'open':
        await open();
        break;
      case 'reopen':
        if (pull !== undefined) await reopen(pull);
        break;
      case 'merge': {
        const outcome = pull === undefined || head === undefined ? undefined : await merge(pull, head, seen);
        if (outcome !== undefined) return outcome;
        break;
      }
      case 'wait':
        if (next.for === 'queue' && pull !== undefined && (await leaveQueue(pull))) break;
        if (pull?.state === 'open') await show(pull);
        return { wait: { for: next.for, message: waitText(next.for, seen) }, ...withStatus(pull, seen) };
    }
  }
  throw new SluiceError('Busy', `branch ${own.name} of ${place.repo} changes all the time; it is tried again`);

  async function observe(mayRemember: boolean): Promise<Seen> {
    const head = await own.head(signal);
    const inspected = head === undefined ? undefined : await own.inspect(head, proposed);
    const { by = '', ...facts } = inspected ?? {};
    const last = target.status?.pullRequest;
    const isQuiet =
      !isPending && head === undefined && (last === undefined || last.state === 'Merged' || last.state === 'Closed');
    const found = isQuiet ? {} : await readPull(last?.number, mayRemember, head);
    const { pull, searchedMs } = found;
    const open = isPending && pull?.state === 'open' ? pull : undefined;
    const remembered = open !== undefined && mayRemember ? rememberedMergeability(open) : undefined;
    const mergeability = remembered ?? (open && (await forge.mergeability(open.number, signal)));
    const mergeabilityMs = remembered === undefined ? context.clock.monotonic() : context.before?.mergeabilityMs;
    Object.assign(round, { pull, mergeability, mergeabilityMs, base, head, searchedMs });
    if (mergeability !== 'queued') attempts.noteQueued(key, undefined);
    const rejected = isPending && pull !== undefined && (await isRejected(pull)) ? pull : undefined;
    const known = found.isRemembered === true ? context.before?.closing : undefined;
    const closing = rejected && (known ?? (await forge.closing(rejected, signal)));
    // Hosts write what it was for a moment later, so that it is read twice.
    round.closing = found.isRemembered === true ? closing : undefined;
    const mayReopen = rejected !== undefined && closing?.isByRemoval === true && !wasReopened(rejected);
    return {
      ...{ pull, head, by, closing, isRemembered: remembered !== undefined || found.isRemembered === true },
      facts: {
        ...{ isPending, merge: wanted?.merge ?? 'manual' },
        ...(head === undefined || inspected === undefined
          ? {}
          : { branch: { ...(facts as Omit<typeof inspected, 'by'>), head } }),
        ...(pull === undefined
          ? {}
          : { pull: { state: pull.state, head: pull.head.commit, isRejected: rejected !== undefined, mayReopen } }),
        ...(mergeability === undefined ? {} : { mergeability }),
        isUnknownForLong: isUnknownForLong(pull, mergeability),
      },
    };
  }

  /** Where users merge, it is read again when something has changed, and now and then: hosts compute it later than they report a push. */
  function rememberedMergeability({ number, head, updatedAt }: PullRequest): PullFacts['mergeability'] {
    if (context.before === undefined || context.before.isWritten || wanted?.merge === 'automatic') return undefined;
    const { pull: known, mergeability, mergeabilityMs = Number.NEGATIVE_INFINITY } = context.before;
    const isSame = known?.number === number && known.head.commit === head.commit && known.updatedAt === updatedAt;
    if (!isSame || context.before.base !== base || mergeability === 'unknown' || mergeability === 'queued')
      return undefined;
    const isRecent = context.clock.monotonic() - mergeabilityMs < MERGEABILITY_MS;
    return isRecent && !attempts.mayHaveQueued(key, number) ? mergeability : undefined;
  }

  /** The pull request of the status, else the one that the host knows: the status may be lost. */
  async function readPull(
    number: number | undefined,
    mayRemember: boolean,
    head: Oid | undefined,
  ): Promise<Pick<PullRound, 'pull' | 'searchedMs'> & { readonly isRemembered?: boolean }> {
    const known = number === undefined ? undefined : await unlessMissing(forge.get(number, signal));
    const isOfBranch =
      known?.head.branch === own.name && known.base.branch === place.branch && known.head.isSameRepository;
    if (known !== undefined && isOfBranch && known.state === 'open') return { pull: known };
    const { before } = context;
    const isOther = known !== undefined && !isOfBranch;
    if (mayRemember && !isOther && before !== undefined && isFoundAgain(before, known, head))
      return { pull: known, searchedMs: before.searchedMs, isRemembered: true };
    const searchedMs = context.clock.monotonic();
    return { pull: await forge.find(own.name, place.branch, signal), searchedMs };
  }

  /** The branch and its last pull request are as they were. Another one can be opened all the same, which is found now and then. */
  function isFoundAgain(before: PullRound, known: PullRequest | undefined, head: Oid | undefined): boolean {
    const { pull, searchedMs = Number.NEGATIVE_INFINITY } = before;
    if (before.isWritten || before.head !== head || context.clock.monotonic() - searchedMs >= SEARCH_MS) return false;
    return isDeepStrictEqual(stateOf(pull), stateOf(known));
  }

  /** Users closed it while it had what is desired now. */
  async function isRejected({ state, body, head }: PullRequest): Promise<boolean> {
    if (state !== 'closed') return false;
    const marked = proposalsIn(body);
    if (marked.length > 0) return marked.includes(id);
    return (await contentOf(branch.git, head.commit, directory)) === content;
  }

  function isUnknownForLong(pull: PullRequest | undefined, mergeability: PullFacts['mergeability']): boolean {
    const { clock, unknownSince } = context;
    if (pull === undefined || mergeability !== 'unknown') {
      unknownSince.delete(key);
      return false;
    }
    const known = unknownSince.get(key);
    if (known?.head === pull.head.commit) return clock.monotonic() - known.at > UNKNOWN_MS;
    unknownSince.set(key, { head: pull.head.commit, at: clock.monotonic() });
    return false;
  }

  async function push(head: Oid | undefined): Promise<void> {
    round.isWritten = true;
    await own.push(head, proposed, author, signal);
  }

  async function close(pull: PullRequest): Promise<void> {
    round.isWritten = true;
    const body = withSection(pull.body, [ENDED], describeUnneeded(target));
    await forge.update(pull.number, { body, state: 'closed' }, signal);
    const message = `${pull.url} was closed: ${place.branch} has everything that is delivered`;
    events.record(target, 'Normal', 'PullRequestClosed', message, 'pull request');
  }

  /** `mark`: of the one that it is opened in the place of. */
  async function open(mark?: string): Promise<void> {
    round.isWritten = true;
    const title = wanted?.title ?? `Deliver to ${name}`;
    const pull = await forge.open({ head: own.name, base: place.branch, title, body: text }, signal);
    events.record(target, 'Normal', 'PullRequestOpened', `packages are delivered by ${pull.url}`, 'pull request');
    await show(pull, { mark });
  }

  async function reopen(pull: PullRequest): Promise<void> {
    round.isWritten = true;
    const mark = reopenedMark(pull.head);
    try {
      await show(pull, { mark, state: 'open' });
    } catch (error) {
      if (!isPermanent(error) && !isSluiceError(error, 'Conflict')) throw error;
      return open(mark);
    }
    events.record(target, 'Normal', 'PullRequestReopened', describeReopened(pull), 'pull request');
  }

  /** The marker is written last, so that labels and reviewers are not left out after a crash; later users may remove them. */
  async function show(
    pull: PullRequest,
    { mark, state }: { readonly mark?: string | undefined; readonly state?: 'open' } = {},
  ): Promise<void> {
    if (proposalsIn(pull.body).length === 0 && wanted !== undefined) {
      await forge.addLabels(pull, wanted.labels, signal);
      for (const one of await forge.requestReviewers(pull.number, wanted.reviewers, signal)) {
        const message = `${pull.url}: the review of ${plainLine(one.name)} cannot be requested: ${plainLine(one.reason)}; correct spec.pullRequest.reviewers`;
        events.record(target, 'Warning', 'ReviewerRefused', message, `reviewer ${one.name}`);
      }
    }
    const rest = pull.body.trim() === text.trim() ? '' : pull.body;
    const again = mark ?? (wasReopened(pull) ? reopenedMark(pull.head) : undefined);
    const body = withSection(rest, again === undefined ? [id] : [id, again], text);
    // Hosts return line breaks as they were sent by browsers.
    if (state === undefined && body === pull.body.replaceAll('\r\n', '\n')) return;
    round.isWritten = true;
    await forge.update(pull.number, { body, ...(state === undefined ? {} : { state }) }, signal);
  }

  /** Returns undefined if everything has to be read again. */
  async function merge(pull: PullRequest, head: Oid, seen: Seen): Promise<PullOutcome | undefined> {
    await show(pull);
    const waiting = (text: string): PullOutcome => ({
      ...{
        wait: { for: 'merge', message: `waits for the merge of ${pull.url}: ${text}` },
        pullRequest: statusOf(pull),
      },
    });
    if (pull.head.commit !== head) return waiting('the host has not read its branch yet');
    const { method = 'merge' } = wanted ?? {};
    const request = { headCommit: head, method, ...mergeTexts(result.message) };
    const { number, updatedAt } = pull;
    const subject = { number, head, method, updatedAt, mergeability: seen.facts.mergeability };
    const obstacle = await attempts.obstacleTo(key, subject, () => forge.mergeMethods(place.branch, signal));
    if (obstacle !== undefined) return waiting(obstacle);
    if (!(await delivery.isPermitted())) return waiting('it is not permitted now');
    let outcome: Awaited<ReturnType<Forge['merge']>>;
    try {
      outcome = await forge.merge(pull.number, request, signal);
    } catch (error) {
      if (isSluiceError(error, 'Conflict')) return undefined;
      // It may be in the merge queue all the same.
      attempts.noteQueued(key, number);
      throw error;
    }
    if (outcome.state !== 'refused') attempts.forget(key);
    if (outcome.state === 'merged') return { pullRequest: { ...statusOf(pull), state: 'Merged' }, isMerged: true };
    if (outcome.state === 'queued') {
      attempts.noteQueued(key, number);
      return {
        wait: { for: 'queue', message: `waits for the merge queue of the host: ${pull.url}` },
        pullRequest: { ...statusOf(pull), state: 'Queued' },
      };
    }
    const isOutdated = outcome.obstacle === 'behind' || outcome.obstacle === 'conflict';
    if (isOutdated && seen.facts.branch?.isUpToDate === false) {
      await push(head);
      return waiting('its branch was set on top of the present one');
    }
    const refused = plainLine(outcome.message);
    attempts.noteUnmerged(key, subject, { obstacle: outcome.obstacle, text: refused });
    return waiting(refused);
  }

  /** Sluice has put it into the merge queue, and the target has users merge now. Returns whether it was there and is not any more. */
  async function leaveQueue({ number, url }: PullRequest): Promise<boolean> {
    if (wanted?.merge === 'automatic' || !attempts.mayHaveQueued(key, number)) return false;
    const reason = 'spec.pullRequest.merge is manual';
    const remove = async () => forge.dequeue(number, signal);
    return (await dequeue(context, { object: target, url, reason, isUpToUsers: true, remove })) === 'left';
  }

  function waitText(reason: PullWait, { pull, head, by, closing }: Seen): string {
    const url = pull?.url ?? `a pull request of ${own.name}`;
    switch (reason) {
      case 'merge':
        return `waits for the merge of ${url}`;
      case 'queue':
        return `waits for the merge queue of the host: ${url}`;
      case 'reopen':
        return describeClosed(url, closing);
      case 'branch': {
        const way = pull?.state === 'open' ? `merge or close ${url}, or remove the commit` : 'remove the branch';
        return `branch ${own.name} was changed by ${plainLine(by)} (commit ${head}), which Sluice does not overwrite; ${way}`;
      }
    }
  }
}

function withStatus(pull: PullRequest | undefined, { facts }: Seen): Pick<PullOutcome, 'pullRequest'> {
  if (pull === undefined) return { pullRequest: undefined };
  return {
    pullRequest: { ...statusOf(pull), ...(facts.mergeability === 'queued' ? { state: 'Queued' as const } : {}) },
  };
}
