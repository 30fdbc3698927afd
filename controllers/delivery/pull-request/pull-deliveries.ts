import type { DeliveredPackage } from '../../../src/delivery/delivered/delivered-package.ts';
import type { PullWait } from '../../../src/delivery/pull-request/decide-pull.ts';
import { type PackageRefusal, packageKey } from '../../../src/delivery/selection/select-revisions.ts';
import type { Desired, PackageState } from '../../../src/delivery/tree/desired-result.ts';
import type { FolderOwner } from '../../../src/delivery/tree/kustomization.ts';
import type { Forge } from '../../../src/forge/forge.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import type { DeliveryTarget } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { keyOf, keyText, type Stored } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { DeliveryReport, PendingPull } from '../delivery-report.ts';
import { deliverByPullRequest, type PullContext, type PullDelivery } from './deliver-by-pull-request.ts';

/** Opens the repository of a target with `spec.pullRequest` on its host. Rejects with InvalidInput if the host does not have it. */
export type OpenTargetForge = (target: Stored<DeliveryTarget>) => Forge;

const REASONS: Readonly<Record<PullWait, DeliveryReport['reason']>> = {
  merge: 'WaitsForMerge',
  queue: 'WaitsForMerge',
  reopen: 'PullRequestClosed',
  branch: 'BranchChanged',
};
/** Until a pull request is read again: an open one, and one that users have to change. */
const OPEN_POLL_MS = 20_000;
const HELD_POLL_MS = 60_000;

/** The deliveries of all targets with `spec.pullRequest`. */
export class PullDeliveries {
  readonly #openForge: OpenTargetForge | undefined;
  readonly #events: EventDeduplicator;
  readonly #clock: Clock;
  /** By target. */
  readonly #forges = new Map<string, { readonly settings: string; readonly forge: Forge }>();
  readonly #unknownSince: PullContext['unknownSince'] = new Map();

  constructor(openForge: OpenTargetForge | undefined, events: EventDeduplicator, clock: Clock) {
    this.#openForge = openForge;
    this.#events = events;
    this.#clock = clock;
  }

  async deliver(
    delivery: PullDelivery,
    before: { readonly folders: readonly FolderOwner[]; readonly drifted: ReadonlySet<string> },
    { refused }: Pick<Desired, 'refused'>,
    signal: AbortSignal,
  ): Promise<PendingPull & { readonly isMerged: boolean }> {
    const { target, result } = delivery;
    const forge = await this.#forgeOf(target);
    const context = { forge, events: this.#events, clock: this.#clock, unknownSince: this.#unknownSince, signal };
    const { wait, pullRequest, isMerged = false } = await deliverByPullRequest(context, delivery);
    const folders = result.edits.size === 0 ? [] : changedFolders(before.folders, result.packages, refused);
    return {
      ...{ isMerged, folders, drifted: before.drifted },
      ...(wait === undefined ? {} : { wait: { reason: REASONS[wait.for], message: wait.message } }),
      ...(pullRequest === undefined ? {} : { pullRequest }),
    };
  }

  async forget(target: string): Promise<void> {
    const known = this.#forges.get(target);
    this.#forges.delete(target);
    this.#unknownSince.delete(target);
    await known?.forge.close();
  }

  async #forgeOf(target: Stored<DeliveryTarget>): Promise<Forge> {
    const key = keyText(keyOf(target));
    const settings = JSON.stringify([target.spec.git.repo, target.spec.pullRequest?.forge]);
    const known = this.#forges.get(key);
    if (known?.settings === settings) return known.forge;
    if (this.#openForge === undefined)
      throw new SluiceError('Unsupported', 'this server opens no pull requests; remove spec.pullRequest of the target');
    await this.forget(key);
    const forge = this.#openForge(target);
    this.#forges.set(key, { settings, forge });
    return forge;
  }
}

/** Milliseconds until a target with this report is read again; undefined without a pull request to wait for. */
export function pullPollMs({ reason, pullRequest }: DeliveryReport): number | undefined {
  if (reason === 'PullRequestClosed' || reason === 'BranchChanged') return HELD_POLL_MS;
  return pullRequest?.state === 'Open' || pullRequest?.state === 'Queued' ? OPEN_POLL_MS : undefined;
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
