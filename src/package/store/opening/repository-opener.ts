import { untilEnded } from '../../../foundation/concurrency/until-ended.ts';
import { messageOf, SluiceError } from '../../../foundation/sluice-error.ts';
import type { RepositoryOptions } from '../../../git/open/open-repository.ts';
import type { Client } from '../../../resource/client/client.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type Stored } from '../../../resource/object/object.ts';
import { credentialsOf } from '../../upstream/credentials.ts';
import { BackgroundLimits } from '../limits/background-limits.ts';
import type { PackageRepository } from '../package-repository.ts';
import type { RevisionStore } from '../revision-store.ts';
import { type OpenOptions, openPackageRepository } from './open-package-repository.ts';
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
export type Opening = Pick<OpenOptions, 'follows' | 'newId' | 'offline' | 'wasRead' | 'signal' | 'onRepair'>;

/** How a repository is opened that stays open while its remote fails. */
export interface AvailableOpening extends Opening {
  readonly signal: AbortSignal;
  /** True if the remote gets as long as the signal allows. Default: a repository that was synced before is opened without it soon. */
  readonly isPatient?: boolean;
  /** The time of the last sync of the open repository that this one replaces, milliseconds since the epoch. Absent if none is replaced. */
  readonly replaces?: number | undefined;
}

/** An open repository. */
export interface AvailableRepository {
  readonly repository: PackageRepository;
  /** Milliseconds since the epoch of its last sync, if it was opened as the mirror had it because the remote failed. */
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
  readonly #background: BackgroundLimits;
  /** By the id of the repository. */
  readonly #running = new Map<string, RunningOpening>();

  constructor(options: RepositoryOpenerOptions) {
    this.#options = options;
    this.#background = new BackgroundLimits(options.clock);
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
   * Opens a repository. Whatever its remote or its Secret fails with, one that was synced before is opened as its mirror has it, with the
   * time of that sync: its packages must not look deleted because Git cannot be read when this process starts, or with new credentials. A
   * user who registers an address for the first time must not read what another user's credentials have fetched.
   */
  async openAvailable(object: Stored<Repository>, how: AvailableOpening): Promise<AvailableRepository> {
    const { isPatient = false, replaces, ...rest } = how;
    const { lastFullSyncTime } = object.status ?? {};
    const syncedAt = replaces ?? (lastFullSyncTime == null ? undefined : Date.parse(lastFullSyncTime));
    const open = (opening: Opening) =>
      replaces === undefined ? this.open(object, opening) : this.#replace(object, opening);
    if (syncedAt === undefined) return { repository: await open(rest) };
    const late = new AbortController();
    const cancel = isPatient ? () => undefined : this.#options.clock.schedule(RESPONSE_TIMEOUT_MS, () => late.abort());
    try {
      const signal = AbortSignal.any([how.signal, late.signal]);
      return { repository: await open({ ...rest, wasRead: true, signal }) };
    } catch (error) {
      if (how.signal.aborted) throw error;
      try {
        return { repository: await open({ ...rest, wasRead: true, offline: true }), syncedAt };
      } catch (offlineError) {
        if (how.signal.aborted) throw error;
        throw late.signal.aborted ? noResponse(object, offlineError) : error;
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
    const { repository, announce } = await this.#read(object, how);
    try {
      announce();
      await this.#options.store.add(repository);
    } catch (error) {
      await repository.close();
      throw error;
    }
    return repository;
  }

  /** Opens the repository of an object whose settings changed, while the open one serves, and puts it in the place of that one. */
  async #replace(object: Stored<Repository>, how: Opening): Promise<PackageRepository> {
    const { store } = this.#options;
    const { repository, announce } = await this.#read(object, how);
    try {
      await untilEnded(how.signal, () => repository.checked());
      const before = store.repository(repository.id);
      await untilEnded(how.signal, () => before.endWrites());
      // What it wrote last.
      await repository.refresh();
      await store.replace(before, repository, announce);
    } catch (error) {
      // Else a listener failed, after all were notified.
      if (store.findRepository(repository.id) !== repository) await repository.close();
      throw error;
    }
    return repository;
  }

  /** Opens a repository that is not in the store. Its changes are announced once `announce` was called. */
  async #read(
    object: Stored<Repository>,
    how: Opening,
  ): Promise<{ readonly repository: PackageRepository; readonly announce: () => void }> {
    const { client, store, signers, git, ...rest } = this.#options;
    const credentials = credentialsOf(client, object, object.spec.git?.secretRef);
    const signer = signers.of(object);
    let isAdded = false;
    const repository = await openPackageRepository(object, {
      ...rest,
      ...how,
      background: this.#background,
      git: { ...git, ...(signer === undefined ? {} : { signer }) },
      ...(credentials === undefined ? {} : { credentials }),
      // What it finds while it opens is announced when it is added.
      onChange: (changes) => {
        if (isAdded) store.announce(changes);
      },
    });
    const announce = () => {
      isAdded = true;
    };
    return { repository, announce };
  }
}

function noResponse({ spec }: Repository, cause: unknown): SluiceError {
  const message = `${spec.git?.repo} did not respond within ${RESPONSE_TIMEOUT_MS / 1000} s, and what was read of it before cannot be used: ${messageOf(cause)}; Sluice tries again with more time`;
  return new SluiceError('Timeout', message, { cause });
}

/** True if the failure of one opening is that of the other too. */
function isShared(failed: Opening, other: Opening): boolean {
  if (failed.signal?.aborted === true) return false;
  return (failed.offline ?? false) === (other.offline ?? false) && (failed.newId ?? false) === (other.newId ?? false);
}
