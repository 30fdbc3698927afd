import { isDeepStrictEqual } from 'node:util';
import type { DeliveredPackage } from '../../../src/delivery/delivered/delivered-package.ts';
import type { PullWait } from '../../../src/delivery/pull-request/decide-pull.ts';
import { type PackageRefusal, packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { Desired, PackageState } from '../../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../../src/delivery/tree/kustomization.ts';
import type { Forge } from '../../../src/forge/forge.ts';
import { PollPace } from '../../../src/forge/poll-pace.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import { dequeue } from '../../pull-request/merging/dequeue.ts';
import { MergeAttempts } from '../../pull-request/merging/merge-attempts.ts';
import type { DeliveryReport, PendingPull } from '../delivery-report.ts';
import {
  deliverByPullRequest,
  type PullContext,
  type PullDelivery,
  type PullRound,
} from './deliver-by-pull-request.ts';
import { type PullStatus, stateOf } from './pull-status.ts';

/** Opens the repository of a target with `spec.pullRequest` on its host. Rejects with InvalidInput if the host does not have it. */
export type OpenTargetForge = (target: Stored<DeliveryTarget>) => Forge;

const REASONS: Readonly<Record<PullWait, DeliveryReport['reason']>> = {
  merge: 'WaitsForMerge',
  queue: 'WaitsForMerge',
  reopen: 'PullRequestClosed',
  branch: 'BranchChanged',
};
/** Nothing is delivered, and no pull request is to be merged. */
export const STOPPED: ReadonlySet<DeliveryReport['reason']> = new Set(['Frozen', 'Suspended', 'TargetIsPackages']);
/** Until a pull request is read again: an open one that has changed lately, and one that users have to change. */
const OPEN_POLL_MS = 20_000;
const HELD_POLL_MS = 60_000;

/** The deliveries of all targets with `spec.pullRequest`. */
export class PullDeliveries {
  readonly #openForge: OpenTargetForge | undefined;
  readonly #events: EventDeduplicator;
  readonly #clock: Clock;
  /** By what they are opened with: targets of one repository share its connections, tokens and reads. */
  readonly #forges = new Map<string, { readonly forge: Forge; readonly targets: Set<string> }>();
  /** By target: the key in `#forges`, and where its pull requests are. */
  readonly #places = new Map<string, { readonly forge: string; readonly place: string }>();
  readonly #unknownSince: PullContext['unknownSince'] = new Map();
  readonly #attempts: MergeAttempts;
  readonly #pace: PollPace;
  /** By target. */
  readonly #rounds = new Map<string, PullRound>();
  /** Targets that a message was about since their last round began. */
  readonly #reported = new Set<string>();

  constructor(openForge: OpenTargetForge | undefined, events: EventDeduplicator, clock: Clock) {
    this.#openForge = openForge;
    this.#events = events;
    this.#clock = clock;
    this.#attempts = new MergeAttempts(clock);
    this.#pace = new PollPace(clock, OPEN_POLL_MS);
  }

  async deliver(
    delivery: PullDelivery,
    present: { readonly folders: readonly FolderOwner[]; readonly drifted: ReadonlySet<string> },
    { refused }: Pick<Desired, 'refused'>,
    signal: AbortSignal,
  ): Promise<PendingPull & { readonly isMerged: boolean }> {
    const { target, result } = delivery;
    const forge = await this.#forgeOf(target);
    const round: PullRound = { isWritten: false };
    const before = this.#rounds.get(keyText(keyOf(target)));
    // It may be about another pull request. Of the round, since this one can fail.
    if (this.#reported.delete(keyText(keyOf(target)))) delete before?.searchedMs;
    const memory = { unknownSince: this.#unknownSince, attempts: this.#attempts, round, before };
    const context = { forge, events: this.#events, clock: this.#clock, ...memory, signal };
    const { wait, pullRequest, isMerged = false } = await deliverByPullRequest(context, delivery);
    this.#noteRound(keyText(keyOf(target)), round);
    const folders = result.edits.size === 0 ? [] : changedFolders(present.folders, result.packages, refused);
    return {
      ...{ isMerged, folders, drifted: present.drifted },
      ...(wait === undefined ? {} : { wait: { reason: REASONS[wait.for], message: wait.message } }),
      ...(pullRequest === undefined ? {} : { pullRequest }),
    };
  }

  /**
   * Removes the pull request of a target that Sluice has put into the merge queue of the host, since its deliveries stop for this reason. By the
   * status alone, which another process may have written. Returns the pull request if it is not there any more, and `failed` where that has to be tried
   * again.
   */
  async dequeue(
    target: Stored<DeliveryTarget>,
    reason: string,
    signal: AbortSignal,
  ): Promise<PullStatus | 'failed' | undefined> {
    const { pullRequest } = target.status ?? {};
    const isOpen = pullRequest?.state === 'Open' || pullRequest?.state === 'Queued';
    if (!isOpen || target.spec.pullRequest === undefined) return undefined;
    const { number, url } = pullRequest;
    const key = keyText(keyOf(target));
    const isUpToUsers = target.spec.pullRequest.merge !== 'automatic';
    if (isUpToUsers && !this.#attempts.mayHaveQueued(key, number)) return undefined;
    const remove = async () => (await this.#forgeOf(target)).dequeue(number, signal);
    const context = { events: this.#events, attempts: this.#attempts, signal };
    const outcome = await dequeue(context, { object: target, url, reason, isUpToUsers, remove });
    if (outcome === 'of-users') return undefined;
    return outcome === 'left' ? { ...pullRequest, state: 'Open' } : 'failed';
  }

  /** A webhook has reported something that a target depends on. */
  noteMessage(target: string): void {
    this.#pace.noteMessage(target);
    this.#attempts.noteMessage(target);
    this.#reported.add(target);
  }

  /** Milliseconds until a target with this report is read again; undefined without a pull request to wait for. */
  pollMs(target: string, { reason, pullRequest }: DeliveryReport): number | undefined {
    if (STOPPED.has(reason)) return undefined;
    const next = this.#pace.nextMs(target, false);
    if (reason === 'PullRequestClosed' || reason === 'BranchChanged') return Math.max(HELD_POLL_MS, next);
    if (pullRequest?.state !== 'Open' && pullRequest?.state !== 'Queued') return undefined;
    return Math.min(next, this.#attempts.dueMs(target) ?? next);
  }

  /** What Sluice changes itself shows in the next round, and is no change that a message should have reported. */
  #noteRound(target: string, round: PullRound): void {
    const before = this.#rounds.get(target);
    this.#rounds.set(target, round);
    const isOwn = round.isWritten || before === undefined || before.isWritten;
    const isSame = isDeepStrictEqual(stateOf(before?.pull), stateOf(round.pull));
    this.#pace.notePoll(target, round, { tookMs: 0, isChanged: !isOwn && !isSame });
    if (isOwn || before.mergeability !== round.mergeability) this.#pace.noteOpened(target);
  }

  async forget(target: string): Promise<void> {
    this.#rounds.delete(target);
    this.#reported.delete(target);
    this.#attempts.forget(target);
    this.#pace.forget(target);
    this.#unknownSince.delete(target);
    await this.#close(target);
  }

  /** The repository stays open while other targets use it. */
  async #close(target: string): Promise<void> {
    const id = this.#places.get(target)?.forge ?? '';
    this.#places.delete(target);
    const known = this.#forges.get(id);
    known?.targets.delete(target);
    if (known?.targets.size !== 0) return;
    this.#forges.delete(id);
    await known.forge.close();
  }

  async #forgeOf(target: Stored<DeliveryTarget>): Promise<Forge> {
    const key = keyText(keyOf(target));
    const { repo, branch } = target.spec.git;
    const { forge: host, merge } = target.spec.pullRequest ?? {};
    // An App has other rights where Sluice merges.
    const id = JSON.stringify([target.metadata.namespace, repo, host, merge === 'automatic']);
    const place = JSON.stringify([repo, branch, host]);
    const known = this.#places.get(key);
    if (known?.place !== place) this.#rounds.delete(key);
    if (known?.forge !== id) await this.#close(key);
    const openForge = this.#openForge;
    if (openForge === undefined)
      throw new SluiceError('Unsupported', 'this server opens no pull requests; remove spec.pullRequest of the target');
    const { forge, targets } = this.#forges.get(id) ?? { forge: openForge(target), targets: new Set() };
    this.#forges.set(id, { forge, targets: targets.add(key) });
    this.#places.set(key, { forge: id, place });
    return forge;
  }
}

/** Packages on the branch that it did not have when the target was reported last: they were merged since. */
export function mergedPackages(
  packages: readonly PackageState[],
  known: readonly DeliveredPackage[],
): readonly PackageState[] {
  const before = new Map(known.map((one) => [packageKey(one), one.revision]));
  return packages.filter((one) => !one.changed && before.get(packageKey(one)) !== one.revision);
}

/** Packages that the target reported, and that the branch has no more. */
export function removedByMerge(
  known: readonly DeliveredPackage[],
  folders: readonly FolderOwner[],
): readonly DeliveredPackage[] {
  const present = new Set(folders.map(packageKey));
  return known.filter((one) => !present.has(packageKey(one)));
}

/** The folders that a merge changes or removes. */
function changedFolders(
  folders: readonly FolderOwner[],
  packages: readonly PackageState[],
  refused: readonly PackageRefusal[],
): readonly FolderOwner[] {
  const staying = new Set([...packages.filter(({ changed }) => !changed), ...refused].map(packageKey));
  return folders.filter((one) => !staying.has(packageKey(one)));
}
