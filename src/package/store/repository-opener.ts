import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
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

/** An open repository. */
export interface AvailableRepository {
  readonly repository: PackageRepository;
  /** Milliseconds since the epoch of its last sync, if it was opened as the mirror had it because the remote did not respond. */
  readonly syncedAt?: number;
}

/** For what has changed since the last sync. Then the mirror is read as it is; a server waits ten seconds for all repositories. */
const RESPONSE_TIMEOUT_MS = 5000;

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

  /**
   * Opens a repository. If its remote does not respond in time, one that was synced before is opened as its mirror has it, with the time of
   * that sync: its packages must not look deleted because a Git host is down when this process starts. A user who registers an address
   * for the first time must not read what another user's credentials have fetched.
   */
  async openAvailable(
    object: Stored<Repository>,
    how: Opening & { readonly signal: AbortSignal },
  ): Promise<AvailableRepository> {
    const { lastFullSyncTime } = object.status ?? {};
    if (lastFullSyncTime == null) return { repository: await this.open(object, how) };
    const late = new AbortController();
    const cancel = this.#options.clock.schedule(RESPONSE_TIMEOUT_MS, () => late.abort());
    try {
      const signal = AbortSignal.any([how.signal, late.signal]);
      return { repository: await this.open(object, { ...how, signal }) };
    } catch (error) {
      const isDown = late.signal.aborted || isSluiceError(error, 'Unavailable') || isSluiceError(error, 'Timeout');
      if (how.signal.aborted || !isDown) throw error;
      try {
        const repository = await this.open(object, { ...how, offline: true });
        return { repository, syncedAt: Date.parse(lastFullSyncTime) };
      } catch {
        // The mirror was lost: the error about the remote counts, or it needs more time than a fetch of changes.
        if (!late.signal.aborted) throw error;
        return { repository: await this.open(object, how) };
      }
    } finally {
      cancel();
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
