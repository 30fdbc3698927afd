import { retryConflicts } from '../../src/foundation/concurrency/retry-conflicts.ts';
import { unlessMissing } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../src/resource/object/object.ts';
import { isOlder } from '../../src/resource/object/resource-version.ts';
import { type RepositoryReport, repositoryStatusAfter } from './repository-status.ts';

export interface RepositoryObjectsOptions {
  readonly client: Client;
  readonly clock: Clock;
  /** An object as the informer of the controller shows it. Default: a read from the storage. */
  readonly shown?: ((key: ObjectKey) => Stored<Repository> | undefined) | undefined;
}

/** Reads the objects of the repository controller, and writes their status. */
export class RepositoryObjects {
  readonly #options: RepositoryObjectsOptions;
  /** Objects as this controller wrote their status last, which the informer may not show yet. */
  readonly #written = new Map<string, Stored<Repository>>();

  constructor(options: RepositoryObjectsOptions) {
    this.#options = options;
  }

  async find(key: ObjectKey): Promise<Stored<Repository> | undefined> {
    const { client, shown } = this.#options;
    if (shown === undefined) return client.find(repositoryKind, key);
    const object = shown(key);
    const own = this.#written.get(keyText(key));
    const isBehind =
      own !== undefined &&
      object?.metadata.uid === own.metadata.uid &&
      isOlder(object.metadata.resourceVersion, own.metadata.resourceVersion);
    if (isBehind) return own;
    this.#written.delete(keyText(key));
    return object;
  }

  forget(key: ObjectKey): void {
    this.#written.delete(keyText(key));
  }

  /** Writes the status if it changed. Status writes wake only controllers that watch the status. */
  async report(key: ObjectKey, next: RepositoryReport): Promise<void> {
    const { client } = this.#options;
    let latest = await this.find(key);
    await retryConflicts(async () => {
      const current = latest ?? (await client.find(repositoryKind, key));
      // Another writer of the status does not wake this controller: what it reports must not wait for the next sync.
      latest = undefined;
      if (current !== undefined) await this.#write(current, next);
    });
  }

  async #write(current: Stored<Repository>, next: RepositoryReport): Promise<void> {
    const { client, clock, shown } = this.#options;
    const status = repositoryStatusAfter(current, next, clock.now());
    if (status === undefined) return;
    const stored = await unlessMissing(client.updateStatus(repositoryKind, { ...current, status }));
    if (stored !== undefined && shown !== undefined) this.#written.set(keyText(keyOf(current)), stored);
  }
}
