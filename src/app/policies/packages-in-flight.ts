import type { ObjectReader } from '../../controller/object-reader.ts';
import type { DeliveredPackages } from '../../delivery/delivered/delivered-packages.ts';
import { wantedRevision } from '../../delivery/status/awaited-targets.ts';
import { currentDeploymentOf, deploymentOf } from '../../delivery/status/target-deployment.ts';
import type { RevisionInFlight } from '../../package/model/policy/approval-rules.ts';
import { isPublished, type PackageRevision, repositoryIdOf } from '../../package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';

type Store = Pick<RevisionStore, 'list' | 'subscribe'>;
interface Readers {
  readonly targets: Pick<ObjectReader<DeliveryTarget>, 'listIn'>;
  readonly repositories: Pick<ObjectReader<Repository>, 'get' | 'listIn'>;
  readonly delivered: DeliveredPackages;
}

/** Selects packages of a policy. */
export type SelectsPackage = (revision: PackageRevision, repository: Stored<Repository> | undefined) => boolean;

interface Reservation {
  readonly revision: PackageRevision;
}

/** Of a namespace the last publication of each package, by repository and package. */
interface Followed {
  /** In flight, or not examined since a change. */
  readonly open: Map<string, PackageRevision>;
  /** Not in flight while `setting` holds. */
  readonly settled: Map<string, PackageRevision>;
  setting: string;
  /** What `setting` was read from: a reader returns the same lists while nothing changes. */
  read: readonly unknown[];
}

/**
 * The packages in flight: of each package the last published revision, from its publication until every target that selects it delivers what it
 * wants of the package, and, where the target has an engine, the engine has reported that as healthy once. A target wants this revision, or that of
 * a pin. It also ends with the publication of a later revision, which is in flight then, with its deletion, and while no target selects the package.
 *
 * A namespace is followed from when a policy first counts. What has settled is not examined again while the targets have the same settings, so that
 * a count costs what is in flight. With other settings all are: users who may write targets must not end a flight by a setting that they take back.
 *
 * An approval that is being decided counts as well, for those that began after it: two at once must not both take the last place.
 */
export class PackagesInFlight {
  readonly #store: Store;
  readonly #readers: Readers;
  /** By namespace. */
  readonly #followed = new Map<string, Followed>();
  /** In the order in which they began. */
  readonly #reservations = new Set<Reservation>();
  #isSubscribed = false;

  constructor(store: Store, readers: Readers) {
    this.#store = store;
    this.#readers = readers;
  }

  /** Announces an approval that is about to be decided; to be ended when it is committed or refused. */
  reserve(revision: PackageRevision): () => void {
    const reservation = { revision };
    this.#reservations.add(reservation);
    return () => this.#reservations.delete(reservation);
  }

  /** The packages in flight that `isSelected`, for the approval of a revision, which is none of them. */
  others(
    approved: Pick<PackageRevision, 'namespace' | 'key' | 'name'>,
    isSelected: SelectsPackage,
  ): RevisionInFlight[] {
    const { namespace } = approved;
    const own = packageOf(approved);
    const found = new Map<string, RevisionInFlight>();
    const targets = this.#readers.targets.listIn(namespace);
    const { open, settled } = this.#follow(namespace, targets);
    for (const [key, revision] of open) {
      const repository = this.#repositoryOf(revision);
      if (this.#hasSettled(revision, targets, repository)) {
        open.delete(key);
        settled.set(key, revision);
      } else if (key !== own && isSelected(revision, repository))
        found.set(key, { name: revision.name, publishedAt: revision.tip.time });
    }
    for (const { revision } of this.#reservations) {
      if (revision.name === approved.name && revision.namespace === namespace) break;
      const key = packageOf(revision);
      // One whose last revision is in flight counts once, as that.
      if (found.has(key) || revision.namespace !== namespace || key === own) continue;
      if (isSelected(revision, this.#repositoryOf(revision))) found.set(key, { name: revision.name });
    }
    return [...found.values()].sort((one, two) => (one.name < two.name ? -1 : 1));
  }

  /** With all packages among the open ones if something else than a status has changed in the targets. */
  #follow(namespace: string, targets: readonly Stored<DeliveryTarget>[]): Followed {
    const followed = this.#followed.get(namespace) ?? this.#begin(namespace);
    const repositories = this.#readers.repositories.listIn(namespace);
    if (followed.read[0] === targets && followed.read[1] === repositories) return followed;
    followed.read = [targets, repositories];
    const setting = settingOf(targets, repositories);
    if (followed.setting === setting) return followed;
    followed.setting = setting;
    for (const [key, revision] of followed.settled) followed.open.set(key, revision);
    followed.settled.clear();
    return followed;
  }

  #begin(namespace: string): Followed {
    if (!this.#isSubscribed) {
      this.#isSubscribed = true;
      this.#store.subscribe((changes) => {
        for (const { before, after } of changes) this.#note(before, after);
      });
    }
    const followed: Followed = { open: new Map(), settled: new Map(), setting: '', read: [] };
    for (const revision of this.#store.list())
      if (revision.namespace === namespace && isLastPublication(revision))
        followed.open.set(packageOf(revision), revision);
    this.#followed.set(namespace, followed);
    return followed;
  }

  #note(before: PackageRevision | undefined, after: PackageRevision | undefined): void {
    const some = after ?? before;
    const followed = some === undefined ? undefined : this.#followed.get(some.namespace);
    if (some === undefined || followed === undefined) return;
    const key = packageOf(some);
    const { open, settled } = followed;
    if (after !== undefined && isLastPublication(after)) {
      // Also for labels, by which targets select.
      open.set(key, after);
      settled.delete(key);
    } else for (const packages of [open, settled]) if (packages.get(key)?.name === some.name) packages.delete(key);
  }

  #repositoryOf({ namespace, key }: PackageRevision): Stored<Repository> | undefined {
    return this.#readers.repositories.get({ namespace, name: key.repository });
  }

  #hasSettled(
    revision: PackageRevision,
    targets: readonly Stored<DeliveryTarget>[],
    repository: Stored<Repository> | undefined,
  ): boolean {
    // Targets select by its labels.
    if (repository === undefined) return false;
    const { delivered } = this.#readers;
    return targets.every((target) => {
      const { key } = revision;
      const wanted = wantedRevision(target, revision, repository);
      if (wanted === undefined) return true;
      if (delivered.find(target, key)?.revision !== wanted) return false;
      if (target.spec.engine === undefined) return true;
      const deployment = currentDeploymentOf(target, delivered.of(target));
      if (deployment === undefined) return false;
      const { healthy, wasHealthy } = deploymentOf(deployment, key);
      return healthy.status === 'True' || wasHealthy === true;
    });
  }
}

/** What decides which target selects which package, and is not of the package. */
function settingOf(targets: readonly Stored<DeliveryTarget>[], repositories: readonly Stored<Repository>[]): string {
  const ofTargets = targets.map(({ metadata: { uid, generation } }) => [uid, generation]);
  // Targets select by the labels of repositories.
  const labels = repositories.map(({ metadata }) => [metadata.name, metadata.labels]);
  return JSON.stringify([ofTargets, labels]);
}

function packageOf(revision: Pick<PackageRevision, 'namespace' | 'key'>): string {
  return `${repositoryIdOf(revision)} ${revision.key.package}`;
}

/** One whose deletion is proposed is delivered as before. */
function isLastPublication(revision: PackageRevision): boolean {
  return revision.latest && revision.revision > 0 && isPublished(revision) && revision.outOfBand === undefined;
}
