import { conflictingRepository, leadingRepository } from '../../../controllers/repository/repository-conflict.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { canonicalAddress, canonicalAddressNow } from '../../git/open/repository-address.ts';
import type { ServerTrust } from '../../package/store/opening/open-repository-trust.ts';
import {
  type AvailableOpening,
  type AvailableRepository,
  RepositoryOpener,
} from '../../package/store/opening/repository-opener.ts';
import { Signers } from '../../package/store/opening/signing.ts';
import type { RevisionStore } from '../../package/store/revision-store.ts';
import type { OpenPurpose } from '../../package/store/revision-store-options.ts';
import type { Client } from '../../resource/client/client.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey, type Stored } from '../../resource/object/object.ts';
import type { DataFolder } from '../data/data-folder.ts';
import type { SessionRenderer } from '../functions/session-renderer.ts';
import type { ObjectReaders } from '../policies/object-readers.ts';
import { policyOf } from '../policies/session-policy.ts';
import { slowMessage } from '../repositories/on-demand-repositories.ts';
import type { OpenFailure } from '../repositories/open-failure.ts';

export interface RegisteredRepositoriesOptions {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly network: GitNetwork;
  readonly trust: ServerTrust;
  readonly client: Client;
  /** Repositories are added to it. */
  readonly store: RevisionStore;
  readonly readers: ObjectReaders;
  /**
   * True where the objects are in a cluster: the controllers decide by the informer there, since each list reads all of them over the
   * network. A data folder is listed, because another process may have written to it just before.
   */
  readonly readsInformer: boolean;
  readonly renderer: SessionRenderer;
  /** Time in milliseconds for which a request on several repositories waits for a remote one. */
  readonly remoteTimeoutMs: number;
  readonly onNote: (text: string | undefined) => void;
  readonly onWarning: ((text: string) => void) | undefined;
  readonly onOpenFailure: ((failure: OpenFailure) => void) | undefined;
}

export interface OpenOptions {
  /** Makes a copy of another repository a separate repository. */
  readonly newId?: boolean;
  /** Reads the state of the last fetch. */
  readonly offline?: boolean;
}

/** The registered repositories of a session, which are opened when a request needs them. */
export class RegisteredRepositories {
  readonly #options: RegisteredRepositoriesOptions;
  readonly #opener: RepositoryOpener;
  #allReached: Promise<void> | undefined;

  constructor(options: RegisteredRepositoriesOptions) {
    this.#options = options;
    const { folder, clock, network, trust, client, store, readers, renderer } = options;
    this.#opener = new RepositoryOpener({
      ...{ client, store, clock, trust, renderer, dataFolder: folder.path, git: { network } },
      signers: new Signers(client, clock),
      isRegistered: (address) => this.isRegistered(address),
      policyFor: (revision, namespace) => policyOf(readers, revision, namespace),
      refreshPolicies: (key) => readers.refresh(key),
      dependentsOf: (revision) => store.dependentsOf(revision),
    });
  }

  async list(): Promise<readonly Stored<Repository>[]> {
    const { readers, readsInformer } = this.#options;
    if (readsInformer) return readers.repositories.list();
    return (await this.#options.client.list(repositoryKind)).items;
  }

  /** By `<namespace>/<name>`. */
  find(id: string): Promise<Stored<Repository> | undefined> {
    return this.#options.client.find(repositoryKind, keyOfId(id));
  }

  /** True for the address of a registered repository. */
  async isRegistered(address: string): Promise<boolean> {
    const repositories = await this.list();
    return repositories.some(({ spec }) => canonicalAddressNow(spec.git?.repo ?? '') === address);
  }

  /** Ids of the repositories of a name, in any namespace. */
  async named(name: string): Promise<readonly string[]> {
    const repositories = await this.list();
    return repositories.filter(({ metadata }) => metadata.name === name).map((object) => keyText(keyOf(object)));
  }

  /**
   * Opens one registered repository, with what its remote holds now. NotFound if it is not registered; Refused if another object
   * holds the same packages, since its policies must not be passed by under a second name. Callers at the same time share one opening.
   */
  async open(id: string, signal?: AbortSignal, options?: OpenOptions): Promise<void> {
    if (this.#options.store.findRepository(id) !== undefined) return;
    const repositories = await this.list();
    const object = repositories.find((repository) => keyText(keyOf(repository)) === id);
    if (object === undefined) throw notRegistered(id, repositories);
    await this.openObject(object, repositories, signal, options);
  }

  /** Opens the repository of an object, as `open` does; `others` must contain at least the objects with the same address. */
  async openObject(
    object: Stored<Repository>,
    others: readonly Stored<Repository>[],
    signal?: AbortSignal,
    { newId = false, offline = false }: OpenOptions = {},
  ): Promise<void> {
    const { store, onNote } = this.#options;
    if (store.findRepository(keyText(keyOf(object))) !== undefined) return;
    const follows = await this.#follows(object, others);
    const how = { newId, offline, follows, ...(signal === undefined ? {} : { signal }) };
    const repository = await this.#opener.open(object, how);
    onNote(repository.git.engineNote);
  }

  /** As `openObject`, for a process that keeps the repository open; see `RepositoryOpener.openAvailable`. */
  async openAvailable(
    object: Stored<Repository>,
    others: readonly Stored<Repository>[],
    how: Pick<AvailableOpening, 'signal' | 'isPatient' | 'replaces'>,
  ): Promise<AvailableRepository> {
    const follows =
      how.replaces === undefined
        ? await this.#follows(object, others)
        : (await leadingRepository(object, others)) !== undefined;
    const opened = await this.#opener.openAvailable(object, { ...how, follows });
    this.#options.onNote(opened.repository.git.engineNote);
    return opened;
  }

  /** True if another namespace registered the same packages first. Throws Refused if another object of its own namespace did. */
  async #follows(object: Stored<Repository>, others: readonly Stored<Repository>[]): Promise<boolean> {
    await this.#expectNoOther(object, others);
    return (await leadingRepository(object, others)) !== undefined;
  }

  /** Opens all registered repositories. One that cannot be opened does not keep the others from being used. */
  async openAll(): Promise<OpenFailure[]> {
    const failures: OpenFailure[] = [];
    const groups = await groupsByAddress(await this.list());
    const openOne = async (object: Stored<Repository>, group: readonly Stored<Repository>[]) => {
      const { namespace, name } = object.metadata;
      try {
        await this.#openInTime(name, (signal) => this.openObject(object, group, signal));
      } catch (error) {
        failures.push({ namespace, repository: name, error });
      }
    };
    await Promise.all(groups.flatMap((group) => group.map((object) => openOne(object, group))));
    return failures.sort((a, b) => (a.repository < b.repository ? -1 : 1));
  }

  /** Opens a repository for a request; where its remote does not answer, a request that only looks gets what was read of it last. */
  async reach(id: string, purpose: OpenPurpose): Promise<void> {
    if (purpose === 'use') return this.open(id);
    try {
      await this.#openInTime(keyOfId(id).name, (signal) => this.open(id, signal));
    } catch (error) {
      if (!isSluiceError(error, 'Unavailable') && !isSluiceError(error, 'Timeout')) throw error;
      try {
        await this.open(id, undefined, { offline: true });
      } catch {
        // It was never read: why it cannot be now is what counts.
        throw error;
      }
      this.#options.onWarning?.(`the remote cannot be read (${messageOf(error)}); this is what was read of it last`);
    }
  }

  /** Opens all repositories for a request, once; those that cannot be opened are reported. */
  reachAll(): Promise<void> {
    this.#allReached ??= this.openAll().then((failures) => {
      for (const failure of failures) this.#options.onOpenFailure?.(failure);
    });
    return this.#allReached;
  }

  /** As `open`, for requests on several repositories: throws Timeout if a remote does not respond in time. */
  async #openInTime(name: string, open: (signal: AbortSignal) => Promise<void>): Promise<void> {
    const { remoteTimeoutMs } = this.#options;
    const signal = AbortSignal.timeout(remoteTimeoutMs);
    try {
      await open(signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      throw new SluiceError('Timeout', slowMessage(name, remoteTimeoutMs), { cause: error });
    }
  }

  async #expectNoOther(object: Stored<Repository>, repositories: readonly Stored<Repository>[]): Promise<void> {
    const { store } = this.#options;
    const isOpen = (one: Stored<Repository>) => store.findRepository(keyText(keyOf(one))) !== undefined;
    const other = await conflictingRepository(object, repositories, isOpen);
    if (other === undefined) return;
    const [key, { name }] = [keyText(keyOf(other)), object.metadata];
    throw new SluiceError(
      'Refused',
      `Repository conflict with existing repository: ${key}; its packages are reached under that name, and "sluice repo unreg ${name}" forgets this one`,
    );
  }
}

/** Groups the objects of one address, so that conflicts are looked for among these alone. */
async function groupsByAddress(repositories: readonly Stored<Repository>[]): Promise<Stored<Repository>[][]> {
  const addresses = await Promise.all(repositories.map(({ spec }) => canonicalAddress(spec.git?.repo ?? '')));
  const groups = new Map<string, Stored<Repository>[]>();
  for (const [at, object] of repositories.entries()) {
    const address = addresses[at] ?? '';
    const group = groups.get(address);
    if (group === undefined) groups.set(address, [object]);
    else group.push(object);
  }
  return [...groups.values()];
}

/** The key of a repository's id, `<namespace>/<name>`. */
export function keyOfId(id: string): ObjectKey {
  const [namespace = '', name = ''] = id.split('/');
  return { namespace, name };
}

function notRegistered(id: string, repositories: readonly Stored<Repository>[]): SluiceError {
  const { namespace, name } = keyOfId(id);
  const known = repositories
    .filter(({ metadata }) => metadata.namespace === namespace)
    .map(({ metadata }) => metadata.name);
  const list = known.length === 0 ? 'none is' : `registered are ${known.join(', ')}`;
  return new SluiceError('NotFound', `repository "${name}" is not registered; ${list}`);
}
