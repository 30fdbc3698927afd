import type { Manager } from '../../controller/manager.ts';
import { ObjectReader } from '../../controller/object-reader.ts';
import { DeliveredPackages } from '../../delivery/delivered/delivered-packages.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { FreezeRule } from '../../package/model/policy/approval-rules.ts';
import type { SourcedPolicy } from '../../package/store/policies/effective-policy.ts';
import { freezeRuleOf } from '../../package/store/policies/freeze-objects.ts';
import type { VariantReader } from '../../package/store/policies/selected-packages.ts';
import type { Client } from '../../resource/client/client.ts';
import { SYSTEM_NAMESPACE } from '../../resource/kinds/core/namespace.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { type PackageVariant, packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packageDeliveryKind } from '../../resource/kinds/sluice/delivery/package-delivery.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { functionPolicyKind } from '../../resource/kinds/sluice/function-policy.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { type WavePlan, wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import {
  type DeepReadonly,
  type KubernetesObject,
  keyOf,
  type ObjectKey,
  type Stored,
} from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { isActive } from '../../rollout/wave/plan-selection.ts';
import { type FreezeMemory, FreezeTimes } from './freeze-times.ts';
import { BY_PLACE, repositoryPlaces, targetPlaces } from './host-places.ts';
import { NamedLists } from './named-lists.ts';
import type { PackagesInFlight } from './packages-in-flight.ts';
import { RepositoryPolicies } from './repository/repository-policies.ts';
import { addressIndex, BY_ADDRESS, type RepositoryReader, readRepositories } from './shared-repositories.ts';

export interface ObjectReadersOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** The Secret of the key that signs, if it is in one. */
  readonly signingSecret?: ObjectKey | undefined;
  /**
   * Given where lists cost requests over the network. A refresh then reads the namespaces that a decision concerns, and no others: those whose
   * Repositories share its packages follow from the watch, and from what this process has read. True for a repository that it has read, by id.
   */
  readonly hasRead?: ((id: string) => boolean) | undefined;
  /** The namespace whose freezes are in force in all. */
  readonly systemNamespace?: string | undefined;
  /** What outlives the process of freezes. Default: nothing. */
  readonly freezeMemory?: FreezeMemory | undefined;
  /** Called with every failed list and watch. */
  readonly onError?: (error: unknown) => void;
}

/** The objects by which Sluice decides and which pure code reads synchronously. All other code reads through the client. */
export class ObjectReaders {
  readonly repositories;
  readonly policies;
  /** Those in repositories. */
  readonly repositoryPolicies;
  readonly functionPolicies;
  readonly freezes;
  readonly freezeTimes: FreezeTimes;
  /** By whose downstream packages and sets policies select. */
  readonly variants;
  readonly variantSets;
  readonly variantReader: VariantReader;
  readonly wavePlans;
  readonly systemNamespace: string;
  /** Set by the session, whose packages are counted. */
  inFlight: PackagesInFlight | undefined;
  /** The ConfigMaps with the people of Repositories. */
  readonly lists;
  readonly targets;
  readonly deliveries;
  /** The packages that targets deliver, from the objects of `deliveries`. */
  readonly delivered = new DeliveredPackages();
  readonly signingSecret;
  /** For `sharingRepositories`. */
  readonly sharing: RepositoryReader;
  readonly #readsNamespaces: boolean;

  constructor({ client, clock, signingSecret, hasRead, systemNamespace, freezeMemory, onError }: ObjectReadersOptions) {
    const report = (error: unknown) => {
      // An informer that lists again has lost no events.
      if (!isSluiceError(error, 'Expired')) onError?.(error);
    };
    const common = { client, clock, onError: report };
    const reader = <T extends KubernetesObject>(kind: Kind<T>) => new ObjectReader({ ...common, kind });
    this.repositories = reader(repositoryKind);
    this.repositories.informer.addIndex(BY_ADDRESS, addressIndex);
    this.repositories.informer.addIndex(BY_PLACE, repositoryPlaces);
    this.#readsNamespaces = hasRead !== undefined;
    this.sharing = {
      get: (key) => this.repositories.get(key),
      byIndex: (name, value) => this.repositories.byIndex(name, value),
      hasRead: hasRead ?? (() => false),
    };
    this.policies = reader(packagePolicyKind);
    this.functionPolicies = reader(functionPolicyKind);
    this.freezes = reader(freezeKind);
    this.variants = reader(packageVariantKind);
    this.variants.informer.addIndex(BY_DOWNSTREAM, ({ metadata, spec }) => [
      downstreamOf(metadata.namespace, spec.downstream),
    ]);
    this.variantSets = reader(packageVariantSetKind);
    this.variantReader = {
      variant: (key) => this.variants.get(key),
      variantsOf: (namespace, downstream) => this.variants.byIndex(BY_DOWNSTREAM, downstreamOf(namespace, downstream)),
      set: (key) => this.variantSets.get(key),
    };
    this.wavePlans = reader(wavePlanKind);
    this.wavePlans.informer.addIndex(ACTIVE, (plan) => (isActive(plan) ? [plan.metadata.namespace ?? ''] : []));
    this.systemNamespace = systemNamespace ?? SYSTEM_NAMESPACE;
    this.freezeTimes = new FreezeTimes(this.freezes.informer, clock, this.systemNamespace, freezeMemory, onError);
    this.lists = new NamedLists({ ...common, repositories: this.repositories.informer });
    this.repositoryPolicies = new RepositoryPolicies({ repositories: this.repositories.informer, clock });
    this.targets = reader(deliveryTargetKind);
    this.targets.informer.addIndex(BY_PLACE, targetPlaces);
    this.deliveries = reader(packageDeliveryKind);
    this.delivered.follow(this.deliveries.informer);
    this.signingSecret =
      signingSecret === undefined
        ? undefined
        : new ObjectReader({
            ...{ ...common, kind: secretKind },
            selection: {
              ...(signingSecret.namespace === undefined ? {} : { namespace: signingSecret.namespace }),
              fieldSelector: `metadata.name=${signingSecret.name}`,
            },
          });
  }

  /** Resolves when all objects are loaded. */
  async start(): Promise<void> {
    await Promise.all(this.#all().map((reader) => reader.start()));
    this.freezeTimes.settle();
    await this.lists.loaded();
  }

  async stop(): Promise<void> {
    this.freezeTimes.stop();
    await Promise.all([...this.#all().map((reader) => reader.stop()), this.lists.stop()]);
  }

  /**
   * Resolves when reads return everything that was acknowledged before the call and that decisions about packages of this Repository depend
   * on. What targets deliver is not read again: that would be a list of thousands of objects for each decision, and only the controller of
   * deliveries writes it. Rejects with Unavailable or Timeout if that cannot be established.
   */
  async refresh(repository: ObjectKey): Promise<void> {
    const { repositories, targets, freezes, signingSecret } = this;
    const { namespace = '' } = repository;
    const done = new Set<string>();
    await Promise.all([
      this.#readsNamespaces ? undefined : repositories.refresh(),
      this.#refreshShared(repository, done),
      targets.refresh(namespace),
      freezes.refresh(this.systemNamespace),
      signingSecret?.refresh(),
    ]);
    // The first lists may have brought a Repository that shares the packages.
    await this.#refreshShared(repository, done);
    await Promise.all([
      this.lists.refresh(readRepositories(this.sharing, repository)),
      this.repositoryPolicies.refresh(done),
    ]);
  }

  /** Reads the Repositories and policies of the namespaces that share the packages of a Repository, except for those that are `done`. */
  async #refreshShared(repository: ObjectKey, done: Set<string>): Promise<void> {
    const { repositories, policies, freezes } = this;
    const known = repositories.informer.synced ? readRepositories(this.sharing, repository) : [];
    const all = [repository, ...known.map(keyOf)].map(({ namespace = '' }) => namespace);
    const namespaces = [...new Set(all)].filter((namespace) => !done.has(namespace));
    for (const namespace of namespaces) done.add(namespace);
    await Promise.all(
      namespaces.flatMap((namespace) => [
        this.#readsNamespaces ? repositories.refresh(namespace) : undefined,
        policies.refresh(namespace),
        freezes.refresh(namespace),
      ]),
    );
  }

  /** The policies of a namespace: its objects, and those that its Repositories name. */
  policiesIn(namespace: string): readonly SourcedPolicy[] {
    const own = this.policies.listIn(namespace);
    const others = this.repositoryPolicies.policiesIn(namespace);
    return others.length === 0 ? own : [...own, ...others];
  }

  /** The plans of a namespace that hold what they select, as they are now. Rejects as `refresh` does. */
  async readActivePlans(namespace: string): Promise<readonly Stored<WavePlan>[]> {
    await this.wavePlans.refresh(namespace);
    return this.activePlans(namespace);
  }

  /** The same as last read. */
  activePlans(namespace: string): readonly Stored<WavePlan>[] {
    return this.wavePlans.byIndex(ACTIVE, namespace);
  }

  /** The freezes that apply in a namespace, also those whose end has passed. */
  freezesIn(namespace: string): FreezeRule[] {
    const namespaces = [...new Set([this.systemNamespace, namespace])];
    const present = namespaces.flatMap((where) => this.freezes.listIn(where));
    return [...present.map((freeze) => freezeRuleOf(freeze, this.systemNamespace)), ...this.freezeTimes.in(namespaces)];
  }

  /** The freezes of all namespaces, also those whose end has passed. */
  allFreezes(): FreezeRule[] {
    return this.freezes.list().map((freeze) => freezeRuleOf(freeze, this.systemNamespace));
  }

  /** Has a manager use the same informers, so that its controllers wake up when these readers show the change. */
  share(manager: Manager): void {
    manager.share(this.repositories.informer);
    manager.share(this.policies.informer);
    manager.share(this.functionPolicies.informer);
    manager.share(this.freezes.informer);
    manager.share(this.variants.informer);
    manager.share(this.variantSets.informer);
    manager.share(this.wavePlans.informer);
    manager.share(this.targets.informer);
    manager.share(this.deliveries.informer);
  }

  #all(): Pick<ObjectReader<KubernetesObject>, 'start' | 'stop'>[] {
    const { repositories, policies, functionPolicies, freezes, targets, deliveries, signingSecret } = this;
    const always = [
      repositories,
      policies,
      functionPolicies,
      freezes,
      this.variants,
      this.variantSets,
      this.wavePlans,
      targets,
      deliveries,
    ];
    return signingSecret === undefined ? always : [...always, signingSecret];
  }
}

/** The index of variants by their downstream packages. */
const BY_DOWNSTREAM = 'downstream';

/** The index of plans that hold what they select, by namespace. */
const ACTIVE = 'active';

function downstreamOf(namespace = '', { repo, package: path }: Downstream): string {
  return `${namespace}/${repo}/${path}`;
}

type Downstream = DeepReadonly<PackageVariant>['spec']['downstream'];
