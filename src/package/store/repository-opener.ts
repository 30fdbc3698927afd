import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import type { RepositoryOptions } from '../../git/open/open-repository.ts';
import type { Client } from '../../resource/client/client.ts';
import type { Repository } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import { credentialsOf } from '../upstream/credentials.ts';
import { type OpenOptions, openPackageRepository } from './open-package-repository.ts';
import type { PackageRepository } from './package-repository.ts';
import type { RevisionStore } from './revision-store.ts';
import type { Signers } from './signing.ts';

export interface RepositoryOpenerOptions
  extends Pick<
    OpenOptions,
    'dataFolder' | 'clock' | 'trust' | 'renderer' | 'policyFor' | 'refreshPolicies' | 'dependentsOf' | 'isRegistered'
  > {
  /** Reads the credentials of repositories. */
  readonly client: Client;
  /** Repositories are added to it. */
  readonly store: RevisionStore;
  /** Signs commits. */
  readonly signers: Signers;
  readonly git?: RepositoryOptions;
}

/** How one repository is opened. */
export type Opening = Pick<OpenOptions, 'follows' | 'newId' | 'offline' | 'signal' | 'onRepair'>;

interface RunningOpening {
  readonly how: Opening;
  readonly opened: Promise<PackageRepository>;
}

/**
 * Opens what Repository objects name and adds it to the store, each repository once however many callers want it at the same time. The
 * store announces its revisions when it is added, and their changes from then on.
 */
export class RepositoryOpener {
  readonly #options: RepositoryOpenerOptions;
  /** By the id of the repository. */
  readonly #running = new Map<string, RunningOpening>();

  constructor(options: RepositoryOpenerOptions) {
    this.#options = options;
  }

  /**
   * Returns the open repository of an object. A caller that waits for the opening of another one gets its error, unless that is about
   * the other caller alone: then it tries by itself.
   */
  async open(object: Stored<Repository>, how: Opening = {}): Promise<PackageRepository> {
    const id = keyText(keyOf(object));
    for (;;) {
      const open = this.#options.store.findRepository(id);
      if (open !== undefined) return open;
      const running = this.#running.get(id);
      if (running === undefined) return this.#start(id, object, how);
      try {
        return await untilEnded(how.signal, () => running.opened);
      } catch (error) {
        if (how.signal?.aborted === true || isShared(running.how, how)) throw error;
      }
    }
  }

  #start(id: string, object: Stored<Repository>, how: Opening): Promise<PackageRepository> {
    const opened = this.#open(object, how).finally(() => this.#running.delete(id));
    this.#running.set(id, { how, opened });
    return opened;
  }

  async #open(object: Stored<Repository>, how: Opening): Promise<PackageRepository> {
    const { client, store, signers, git, ...rest } = this.#options;
    const credentials = credentialsOf(client, object, object.spec.git?.secretRef);
    const signer = signers.of(object);
    let isAdded = false;
    const repository = await openPackageRepository(object, {
      ...rest,
      ...how,
      git: { ...git, ...(signer === undefined ? {} : { signer }) },
      ...(credentials === undefined ? {} : { credentials }),
      // What it finds while it opens is announced when it is added.
      onChange: (changes) => {
        if (isAdded) store.announce(changes);
      },
    });
    try {
      isAdded = true;
      await store.add(repository);
    } catch (error) {
      await repository.close();
      throw error;
    }
    return repository;
  }
}

/** True if the failure of one opening is that of the other too. */
function isShared(failed: Opening, other: Opening): boolean {
  if (failed.signal?.aborted === true) return false;
  return (failed.offline ?? false) === (other.offline ?? false) && (failed.newId ?? false) === (other.newId ?? false);
}
