import type { Manager } from '../../controller/manager.ts';
import { ObjectReader } from '../../controller/object-reader.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { Client } from '../../resource/client/client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery-target.ts';
import { functionPolicyKind } from '../../resource/kinds/sluice/function-policy.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import type { KubernetesObject, ObjectKey } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { NamedLists } from './named-lists.ts';
import { readRepositories } from './shared-repositories.ts';

export interface ObjectReadersOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** The Secret of the key that signs, if it is in one. */
  readonly signingSecret?: ObjectKey | undefined;
  /** Called with every failed list and watch. */
  readonly onError?: (error: unknown) => void;
}

/** The objects by which Sluice decides and which pure code reads synchronously. All other code reads through the client. */
export class ObjectReaders {
  readonly repositories;
  readonly policies;
  readonly functionPolicies;
  /** The ConfigMaps with the people of Repositories. */
  readonly lists;
  readonly targets;
  readonly signingSecret;

  constructor({ client, clock, signingSecret, onError }: ObjectReadersOptions) {
    const report = (error: unknown) => {
      // An informer that lists again has lost no events.
      if (!isSluiceError(error, 'Expired')) onError?.(error);
    };
    const common = { client, clock, onError: report };
    const reader = <T extends KubernetesObject>(kind: Kind<T>) => new ObjectReader({ ...common, kind });
    this.repositories = reader(repositoryKind);
    this.policies = reader(packagePolicyKind);
    this.functionPolicies = reader(functionPolicyKind);
    this.lists = new NamedLists({ ...common, repositories: this.repositories.informer });
    this.targets = reader(deliveryTargetKind);
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
    await this.lists.loaded();
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#all().map((reader) => reader.stop()), this.lists.stop()]);
  }

  /**
   * Resolves when reads return everything that was acknowledged before the call and that decisions about packages of this Repository depend
   * on. Rejects with Unavailable or Timeout if that cannot be established.
   */
  async refresh(repository: ObjectKey): Promise<void> {
    const { repositories, policies, targets, signingSecret } = this;
    await Promise.all([repositories.refresh(), policies.refresh(), targets.refresh(), signingSecret?.refresh()]);
    await this.lists.refresh(readRepositories(repositories, repository));
  }

  /** Has a manager use the same informers, so that its controllers wake up when these readers show the change. */
  share(manager: Manager): void {
    manager.share(this.repositories.informer);
    manager.share(this.policies.informer);
    manager.share(this.functionPolicies.informer);
    manager.share(this.targets.informer);
  }

  #all(): Pick<ObjectReader<KubernetesObject>, 'start' | 'stop'>[] {
    const { repositories, policies, functionPolicies, targets, signingSecret } = this;
    const always = [repositories, policies, functionPolicies, targets];
    return signingSecret === undefined ? always : [...always, signingSecret];
  }
}
