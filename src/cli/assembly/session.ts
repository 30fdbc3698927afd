import { credentialsOf } from '../../../controllers/credentials.ts';
import { conflictingRepository } from '../../../controllers/repository/repository-conflict.ts';
import { Signers } from '../../../controllers/signing.ts';
import { type Clock, systemClock } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { openPackageRepository } from '../../package/open-package-repository.ts';
import { RevisionStore } from '../../package/revision-store.ts';
import { packageStorages } from '../../package/storage/package-storages.ts';
import type { RevisionTable } from '../../package/storage/revision-table.ts';
import type { Client } from '../../resource/client.ts';
import type { EventLog } from '../../resource/event-log.ts';
import { eventKind } from '../../resource/kinds/event.ts';
import { eventV1Kind, eventV1Translation } from '../../resource/kinds/event-v1.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/repository.ts';
import type { QuotaLimits } from '../../resource/namespace-quota.ts';
import { keyOf, keyText, type Stored } from '../../resource/object.ts';
import { Registry } from '../../resource/registry.ts';
import { RegistryClient } from '../../resource/registry-client.ts';
import type { Actor, RequestContext } from '../../resource/request-context.ts';
import { TranslatedStorage } from '../../resource/translated-storage.ts';
import { createDataFolder, type DataFolder, expectDataFolder } from './data-folder.ts';
import { DEFAULT_FUNCTION_SETTINGS, type FunctionSettings } from './function-settings.ts';
import { ObjectSet } from './object-set.ts';
import type { OpenFailure } from './open-failure.ts';
import { PackageMemory } from './package-memory.ts';
import { policyOf } from './session-policy.ts';
import { SessionRenderer } from './session-renderer.ts';
import { upstreamAddresses } from './upstreams.ts';

export interface SessionOptions {
  readonly folder: DataFolder;
  readonly actor: Actor;
  /** Write objects, not only packages; the data folder is made if it is not there. Without it a missing one is NotFound. */
  readonly write?: boolean;
  readonly clock?: Clock;
  /** Controllers run that open every repository that is registered. */
  readonly opens?: boolean;
  /** How long, in milliseconds, a command that looks at several repositories waits for a remote one; default 10 s. */
  readonly patience?: number;
  /** What functions of packages may do outside of this process. */
  readonly functions?: FunctionSettings;
  /** What the objects of a namespace may be together. */
  readonly quota?: Partial<QuotaLimits> | undefined;
  /** Told once of each limit of the Git engine at hand. */
  readonly onNote?: (note: string) => void;
  /** Told what was taken otherwise than it was asked for. */
  readonly onWarning?: (text: string) => void;
  /** Told why what nobody waits for could not be written. */
  readonly onError?: (error: unknown) => void;
}

const PATIENCE = 10_000;

/** Objects, packages and the client to them, on a data folder. Every command works through one. */
export class Session {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly actor: Actor;
  readonly log: EventLog;
  readonly objects: ObjectSet;
  readonly store: RevisionStore;
  readonly registry: Registry;
  readonly client: Client;
  readonly renderer: SessionRenderer;

  readonly patience: number;

  readonly #signers: Signers;
  readonly #memory: PackageMemory | undefined;
  readonly #revisions: RevisionTable;
  readonly #notes = new Set<string>();
  readonly #onNote: (note: string) => void;

  private constructor(options: SessionOptions, clock: Clock, objects: ObjectSet) {
    this.folder = options.folder;
    this.#onNote = options.onNote ?? (() => undefined);
    this.actor = options.actor;
    this.patience = options.patience ?? PATIENCE;
    this.clock = clock;
    this.log = objects.log;
    this.objects = objects;
    this.store = new RevisionStore({
      address: upstreamAddresses(options.folder, clock, () => this.client),
      isComing: (name) => options.opens === true && this.repository(name) !== undefined,
    });
    this.renderer = new SessionRenderer(objects, options.functions ?? DEFAULT_FUNCTION_SETTINGS);
    this.registry = new Registry();
    for (const storage of objects.storages()) this.registry.register(storage);
    this.#memory = options.write === true ? new PackageMemory(objects.database) : undefined;
    const { revisions, resources, packages } = packageStorages({
      ...{ store: this.store, log: this.log, clock },
      ...this.#memory,
    });
    this.#revisions = revisions.table;
    this.registry.register(revisions);
    this.registry.register(resources);
    this.registry.register(packages);
    const events = this.registry.storage(eventKind);
    this.registry.register(new TranslatedStorage(eventV1Kind, events, eventV1Translation));
    this.client = new RegistryClient(this.registry, options.actor, 'cli', options.onWarning);
    this.#signers = new Signers(this.client, clock);
  }

  static async open(options: SessionOptions): Promise<Session> {
    const { folder, clock = systemClock, write = false, quota, onError } = options;
    if (write) await createDataFolder(folder);
    else await expectDataFolder(folder);
    return new Session(options, clock, await ObjectSet.open({ folder, clock, write, quota, onError }));
  }

  /** For calls of the store, with why. */
  context(reason?: string): RequestContext {
    return { actor: this.actor, face: 'cli', ...(reason === undefined ? {} : { reason }) };
  }

  repositories(): Stored<Repository>[] {
    return this.objects.of(repositoryKind);
  }

  repository(name: string): Stored<Repository> | undefined {
    return this.repositories().find((repository) => repository.metadata.name === name);
  }

  /**
   * Opens one registered repository, with what its remote holds now. NotFound if it is not registered; Refused if another object
   * holds the same packages, since its policies must not be passed by under a second name.
   */
  async openRepository(name: string, signal?: AbortSignal): Promise<void> {
    if (this.store.repositories().some((open) => open.repository === name)) return;
    const object = this.repository(name);
    if (object === undefined) {
      const known = this.repositories().map((repository) => repository.metadata.name);
      const list = known.length === 0 ? 'none is' : `registered are ${known.join(', ')}`;
      throw new SluiceError('NotFound', `repository "${name}" is not registered; ${list}`);
    }
    const other = await conflictingRepository(object, this.repositories(), () => false);
    if (other !== undefined) {
      const key = keyText(keyOf(other));
      throw new SluiceError(
        'Refused',
        `Repository conflict with existing repository: ${key}; its packages are reached under that name, and "sluice repo unreg ${name}" forgets this one`,
      );
    }
    const credentials = credentialsOf(this.client, object, object.spec.git?.secretRef);
    const signer = this.#signers.of(object);
    let added = false;
    const repository = await openPackageRepository(object, {
      dataFolder: this.folder.path,
      clock: this.clock,
      renderer: this.renderer,
      ...(credentials === undefined ? {} : { credentials }),
      ...(signer === undefined ? {} : { git: { signer } }),
      ...(signal === undefined ? {} : { signal }),
      policyFor: (revision, namespace) => policyOf(this.objects, revision, namespace),
      dependentsOf: (revision) => this.store.dependentsOf(revision),
      // What it finds while it opens is announced when it is added.
      onChange: (changes) => {
        if (added) this.store.announce(changes);
      },
    });
    added = true;
    try {
      await this.store.add(repository);
    } catch (error) {
      await repository.close();
      throw error;
    }
    this.note(repository.git.engineNote);
  }

  /** As `openRepository`, for those who look at many: a remote that does not answer is given up after a while, with Timeout. */
  async openSoon(name: string): Promise<void> {
    const signal = AbortSignal.timeout(this.patience);
    try {
      await this.openRepository(name, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
      const message = `it did not answer within ${this.patience / 1000} s; "sluice repo sync ${name}" has more patience`;
      throw new SluiceError('Timeout', message, { cause: error });
    }
  }

  /** Opens all registered repositories. One that cannot be opened does not keep the others from being used. */
  async openAll(): Promise<OpenFailure[]> {
    const failures: OpenFailure[] = [];
    await Promise.all(
      this.repositories().map(async ({ metadata: { name } }) => {
        try {
          await this.openSoon(name);
        } catch (error) {
          failures.push({ repository: name, error });
        }
      }),
    );
    return failures.sort((a, b) => (a.repository < b.repository ? -1 : 1));
  }

  /** From now on others may look at lists: a revision that arrives later is news to them. */
  endQuiet(): void {
    if (this.#memory !== undefined) this.#memory.versions.quiet = false;
    const registered = new Set(this.repositories().map(({ metadata }) => metadata.name));
    this.#revisions.forgetMissing((repository) => registered.has(repository));
    this.log.forgetUnkept();
  }

  /** Passes a note on, once. */
  note(text: string | undefined): void {
    if (text === undefined || this.#notes.has(text)) return;
    this.#notes.add(text);
    this.#onNote(text);
  }

  /** Saves caches and ends child processes. */
  async close(): Promise<void> {
    this.log.close();
    try {
      await this.renderer.close();
    } finally {
      try {
        await this.store.close();
      } finally {
        await this.objects.close();
      }
    }
  }
}
