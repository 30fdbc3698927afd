import type { ObjectReader } from '../../controller/object-reader.ts';
import type { DeliveredPackages } from '../../delivery/delivered/delivered-packages.ts';
import { currentDeploymentOf, deploymentOf } from '../../delivery/status/target-deployment.ts';
import type { RevisionInFlight } from '../../package/model/policy/approval-rules.ts';
import { type PackageRevision, repositoryIdOf } from '../../package/model/revision/package-revision.ts';
import { selects } from '../../package/store/policies/selected-packages.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { DeliveryTarget } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { Stored } from '../../resource/object/object.ts';

type Store = Pick<RevisionStore, 'list' | 'subscribe'>;
interface Readers {
  readonly targets: Pick<ObjectReader<DeliveryTarget>, 'listIn'>;
  readonly repositories: Pick<ObjectReader<Repository>, 'get'>;
  readonly delivered: DeliveredPackages;
}

/** Selects packages of a policy. */
export type SelectsPackage = (revision: PackageRevision, repository: Stored<Repository> | undefined) => boolean;

interface Reservation {
  readonly revision: PackageRevision;
}

/**
 * The packages in flight: of each package the last published revision, from its publication until every target that selects it has
 * delivered it and, where the target has an engine, the engine has reported it as healthy once. It also ends with the publication of a
 * later revision, which is in flight then, with its deletion, and where no target selects the package or a pin holds it at another
 * revision. A namespace is followed from when a policy first counts; what has ended is not examined again, so that a count costs what is
 * in flight.
 *
 * An approval that is being decided counts as well, for those that began after it: two at once must not both take the last place.
 */
export class PackagesInFlight {
  readonly #store: Store;
  readonly #readers: Readers;
  /** By namespace, then by repository and package. */
  readonly #followed = new Map<string, Map<string, PackageRevision>>();
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
    const candidates = this.#of(namespace);
    const targets = this.#readers.targets.listIn(namespace);
    for (const [key, revision] of candidates) {
      const repository = this.#repositoryOf(revision);
      if (this.#hasEnded(revision, targets, repository)) candidates.delete(key);
      else if (key !== own && isSelected(revision, repository))
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

  #of(namespace: string): Map<string, PackageRevision> {
    const known = this.#followed.get(namespace);
    if (known !== undefined) return known;
    if (!this.#isSubscribed) {
      this.#isSubscribed = true;
      this.#store.subscribe((changes) => {
        for (const { before, after } of changes) this.#note(before, after);
      });
    }
    const packages = new Map<string, PackageRevision>();
    for (const revision of this.#store.list()) {
      if (revision.namespace === namespace && isLastPublication(revision)) packages.set(packageOf(revision), revision);
    }
    this.#followed.set(namespace, packages);
    return packages;
  }

  #note(before: PackageRevision | undefined, after: PackageRevision | undefined): void {
    const some = after ?? before;
    const packages = some === undefined ? undefined : this.#followed.get(some.namespace);
    if (some === undefined || packages === undefined) return;
    const key = packageOf(some);
    if (after !== undefined && isLastPublication(after)) {
      // A change of its labels begins nothing.
      const isNew = before === undefined || !isLastPublication(before) || before.revision !== after.revision;
      if (isNew || packages.has(key)) packages.set(key, after);
    } else if (packages.get(key)?.name === some.name) packages.delete(key);
  }

  #repositoryOf({ namespace, key }: PackageRevision): Stored<Repository> | undefined {
    return this.#readers.repositories.get({ namespace, name: key.repository });
  }

  #hasEnded(
    revision: PackageRevision,
    targets: readonly Stored<DeliveryTarget>[],
    repository: Stored<Repository> | undefined,
  ): boolean {
    const { delivered } = this.#readers;
    return targets.every((target) => {
      const { selector, pins = [], engine } = target.spec;
      const { key } = revision;
      if (!selects(selector, revision, repository)) return true;
      if (pins.some((pin) => pin.repository === key.repository && pin.package === key.package)) return true;
      if (delivered.find(target, key)?.revision !== revision.revision) return false;
      if (engine === undefined) return true;
      const deployment = currentDeploymentOf(target, delivered.of(target));
      if (deployment === undefined) return false;
      const { healthy, wasHealthy } = deploymentOf(deployment, key);
      return healthy.status === 'True' || wasHealthy === true;
    });
  }
}

function packageOf(revision: Pick<PackageRevision, 'namespace' | 'key'>): string {
  return `${repositoryIdOf(revision)} ${revision.key.package}`;
}

function isLastPublication({ latest, lifecycle, revision, outOfBand }: PackageRevision): boolean {
  return latest && revision > 0 && lifecycle === 'Published' && outOfBand === undefined;
}
