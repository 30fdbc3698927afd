import { TargetObjects } from '../../../controllers/delivery/target/target-objects.ts';
import type { MayApprove } from '../../../controllers/pull-request/rights.ts';
import { ShownProposals } from '../../../controllers/pull-request/shown-proposals.ts';
import { type BuildPackage, packageBuilder } from '../../delivery/render/build-package.ts';
import { deploymentsOf } from '../../delivery/status/revision-deployments.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { type GitNetwork, PUBLIC_NETWORK } from '../../git/network/git-network.ts';
import { packageStorages } from '../../package/api/package-storages.ts';
import type { RevisionTable } from '../../package/api/table/revision-table.ts';
import { type PackageRevision, revisionId } from '../../package/model/revision/package-revision.ts';
import type { ServerTrust } from '../../package/store/opening/open-repository-trust.ts';
import { concernedRevisions, type RuleChange } from '../../package/store/policies/concerned-revisions.ts';
import { RevisionStore } from '../../package/store/revision-store.ts';
import type { ApprovalHolds } from '../../package/store/unmet-rules.ts';
import type { Client } from '../../resource/client/client.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { eventKind } from '../../resource/kinds/core/event.ts';
import { eventV1Kind, eventV1Translation } from '../../resource/kinds/events/event-v1.ts';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { keyOf, keyText, type Stored } from '../../resource/object/object.ts';
import type { Actor, RequestContext } from '../../resource/object/request-context.ts';
import type { QuotaLimits } from '../../resource/storage/memory/namespace-quota.ts';
import { Registry } from '../../resource/storage/registry.ts';
import type { Storage } from '../../resource/storage/storage.ts';
import { TranslatedStorage } from '../../resource/storage/translated-storage.ts';
import type { EventLog } from '../../resource/watch/event-log.ts';
import { createDataFolder, type DataFolder, expectDatabase, expectDataFolder } from '../data/data-folder.ts';
import { ObjectSet } from '../data/object-set.ts';
import { PackageMemory } from '../data/package-memory.ts';
import type { SessionObjects } from '../data/session-objects.ts';
import type { UpAbout } from '../data/up-lock.ts';
import { DEFAULT_FUNCTION_SETTINGS, type FunctionSettings } from '../functions/function-settings.ts';
import { renderPrograms } from '../functions/render-programs.ts';
import { SessionRenderer } from '../functions/session-renderer.ts';
import { approvalHooks, type WhenOpened } from '../policies/approval-hooks.ts';
import type { FreezeMemory } from '../policies/freeze-times.ts';
import { ObjectReaders } from '../policies/object-readers.ts';
import { PackagesInFlight } from '../policies/packages-in-flight.ts';
import { planHolds } from '../policies/plan-holds.ts';
import { mainBranches } from '../policies/repository/policy-folder.ts';
import { readSelectionCheck } from '../policies/selection-check.ts';
import { sharingRepositories } from '../policies/shared-repositories.ts';
import { OnDemandRepositories } from '../repositories/on-demand-repositories.ts';
import { OnDemandStorage, type RepositoriesOnDemand } from '../repositories/on-demand-storage.ts';
import type { OpenFailure } from '../repositories/open-failure.ts';
import { upstreamAddresses } from '../repositories/upstreams.ts';
import { openTrust, type SigningKey } from '../trust/open-trust.ts';
import { recordAlert } from '../trust/record-alert.ts';
import { type SigningChoice, signingKeyOf } from '../trust/signing-choice.ts';
import { keyOfId, RegisteredRepositories } from './registered-repositories.ts';
import { SessionReadings } from './session-readings.ts';

/** Milliseconds that closing waits for the trust ledger. */
const MAX_LEDGER_FLUSH_MS = 2000;

export interface SessionOptions {
  readonly folder: DataFolder;
  readonly actor: Actor;
  /** Git hosts that may be connected to. Default: public ones. */
  readonly network?: GitNetwork;
  /** Write objects, not only packages; creates a missing data folder. Otherwise a missing folder is NotFound. */
  readonly write?: boolean;
  readonly clock?: Clock;
  /** Controllers run that open every repository that is registered. */
  readonly opens?: boolean;
  /** Milliseconds that a command on several repositories waits for a remote one; default 10 s. */
  readonly remoteTimeoutMs?: number;
  /** Permissions of functions outside of this process. */
  readonly functions?: FunctionSettings;
  /** The key that signs statements; default: that of the data folder. */
  readonly signing?: SigningChoice;
  /** The namespace whose freezes are in force in all. Default: `sluice-system`. */
  readonly systemNamespace?: string;
  /** Quota of each namespace. */
  readonly quota?: Partial<QuotaLimits> | undefined;
  /** Information about the `sluice up` with this session. Absent if another process may run one, or none. */
  readonly about?: UpAbout;
  /** Ends the opening of the session, which waits for the objects. */
  readonly signal?: AbortSignal;
  /** Called once for each limitation of the Git engine in use. */
  readonly onNote?: (note: string) => void;
  /** Called with each warning about a request, such as that its result is from an earlier fetch. */
  readonly onWarning?: (text: string) => void;
  /** Called for each repository that a request for all packages could not open. */
  readonly onOpenFailure?: ((failure: OpenFailure) => void) | undefined;
  /** Called with the error of a write in the background, which no caller awaits. */
  readonly onError?: (error: unknown) => void;
}

/** Where a session keeps what is not in Git. */
export interface SessionBackend {
  /** Closed with the session. */
  readonly objects: SessionObjects;
  /** Opens the trust, with the key that was chosen, if one was. Closed with the session. */
  openTrust(key: SigningKey | undefined): Promise<ServerTrust>;
}

const REMOTE_TIMEOUT_MS = 10_000;

/** Objects, packages and the client to them, on a data folder. Every command works through one. */
export class Session {
  readonly folder: DataFolder;
  readonly clock: Clock;
  readonly actor: Actor;
  readonly log: EventLog;
  readonly objects: SessionObjects;
  /** Readers of the objects that decisions depend on. */
  readonly readers: ObjectReaders;
  /** Filled by the delivery controller of this process. */
  readonly targetObjects = new TargetObjects();
  /** Filled by the controller of pull requests of this process. */
  readonly shownProposals: ShownProposals;
  readonly store: RevisionStore;
  /** The plans that hold revisions, as last read. */
  readonly holds: ApprovalHolds;
  readonly repositories: RegisteredRepositories;
  /** What is computed about a revision when a client requests it. */
  readonly readings: SessionReadings;
  readonly registry: Registry;
  readonly client: Client;
  readonly renderer: SessionRenderer;
  /** Renders what strangers wrote: by built-in functions alone. */
  readonly restrictedRenderer: SessionRenderer;
  /** The signing key, and the trusted keys and known repositories. */
  readonly trust: ServerTrust;

  /** Makes the manifests of packages for delivery targets. */
  readonly buildPackage: BuildPackage;
  readonly remoteTimeoutMs: number;
  readonly network: GitNetwork;

  /** Set by the service that knows the rights of users. */
  mayApprove: MayApprove | undefined;
  /** Set by the service that opens repositories one after the other. */
  whenOpened: WhenOpened | undefined;
  readonly #memory: PackageMemory | undefined;
  readonly #revisions: RevisionTable;
  readonly #notes = new Set<string>();
  /** The version of the objects when this process opened them. */
  readonly #startVersion: bigint;
  readonly #onNote: (note: string) => void;
  readonly #onWarning: ((text: string) => void) | undefined;

  private constructor(options: SessionOptions, clock: Clock, objects: SessionObjects, trust: ServerTrust) {
    this.folder = options.folder;
    this.#onNote = options.onNote ?? (() => undefined);
    this.#onWarning = options.onWarning;
    this.actor = options.actor;
    this.network = options.network ?? PUBLIC_NETWORK;
    this.buildPackage = packageBuilder(renderPrograms(options.functions ?? DEFAULT_FUNCTION_SETTINGS));
    this.remoteTimeoutMs = options.remoteTimeoutMs ?? REMOTE_TIMEOUT_MS;
    this.clock = clock;
    this.trust = trust;
    this.log = objects.log;
    this.#startVersion = BigInt(objects.log.version);
    this.objects = objects;
    this.store = new RevisionStore({
      address: upstreamAddresses(options.folder, clock, this.network, () => this.client),
      isComing: (id) => options.opens === true && this.readers.repositories.get(keyOfId(id)) !== undefined,
      ...(options.opens === true
        ? {}
        : {
            open: (id, purpose) => this.repositories.reach(id, purpose),
            openAll: () => this.repositories.reachAll(),
          }),
      ...approvalHooks({
        ...{ buildPackage: this.buildPackage, targetObjects: this.targetObjects },
        ...{ store: () => this.store, readers: () => this.readers, mayApprove: () => this.mayApprove },
        whenOpened: () => this.whenOpened,
      }),
    });
    // Not that of the registry, where a watch may open repositories.
    const reading = objects.client({ name: 'sluice' }).as({ name: 'sluice' }, 'controller');
    this.holds = planHolds({ store: this.store, readers: () => this.readers, client: reading });
    this.registry = new Registry();
    for (const storage of objects.storages())
      this.registry.register(options.opens === true ? storage : this.#onDemand(storage));
    this.#memory =
      options.write === true && objects.database !== undefined
        ? new PackageMemory(objects.database, options.onError)
        : undefined;
    const { revisions, resources, packages } = packageStorages({
      ...{ store: this.store, log: this.log, clock },
      alert: (revision, reason, message) => recordAlert(this, revision, reason, message),
      explain: (context, key) => this.readings.explain(context, key),
      preview: (context, revision, target) => this.readings.preview(context, revision, target),
      deployments: (revision) =>
        deploymentsOf(revision, this.readers.targets.listIn(revision.namespace), this.readers.delivered),
      selection: (repository) => readSelectionCheck(this.readers, repository),
      holds: this.holds,
      freezes: (namespace) => (namespace === undefined ? this.readers.allFreezes() : this.readers.freezesIn(namespace)),
      ...this.#memory,
    });
    this.#revisions = revisions.table;
    this.shownProposals = new ShownProposals(
      options.write === true ? objects.database?.notes('shown-proposals') : undefined,
    );
    const onDemand: RepositoriesOnDemand = {
      open: (id) => this.store.reach(id),
      openAll: () => this.store.reachAll(),
      refresh: async (id) => {
        await this.store.repository(id).sync();
      },
      named: (name) => this.repositories.named(name),
    };
    for (const storage of [revisions, resources, packages] as unknown as Storage[])
      this.registry.register(options.opens === true ? storage : new OnDemandStorage(storage, onDemand));
    const events = this.registry.storage(eventKind);
    this.registry.register(new TranslatedStorage(eventV1Kind, events, eventV1Translation));
    this.client = new RegistryClient(this.registry, options.actor, 'cli', options.onWarning);
    this.readers = new ObjectReaders({
      client: reading,
      clock,
      signingSecret: options.signing?.secret,
      ...(objects.database === undefined
        ? { hasRead: (id: string) => this.store.findRepository(id) !== undefined }
        : {}),
      systemNamespace: options.systemNamespace,
      freezeMemory: freezeMemory(options, objects),
      ...(options.onError === undefined ? {} : { onError: options.onError }),
    });
    const functions = options.functions ?? DEFAULT_FUNCTION_SETTINGS;
    this.renderer = new SessionRenderer(this.readers, functions);
    const { registry } = functions;
    const restricted = registry === undefined ? {} : { registry };
    this.restrictedRenderer = new SessionRenderer(this.readers, { ...DEFAULT_FUNCTION_SETTINGS, ...restricted });
    this.readers.inFlight = new PackagesInFlight(this.store, this.readers);
    this.readers.repositoryPolicies.source = mainBranches(this.store);
    this.repositories = new RegisteredRepositories({
      ...{ folder: this.folder, clock, network: this.network, trust, client: this.client, store: this.store },
      ...{ readers: this.readers, renderer: this.renderer, remoteTimeoutMs: this.remoteTimeoutMs },
      readsInformer: objects.database === undefined,
      onNote: (text) => this.note(text),
      ...{ onWarning: options.onWarning, onOpenFailure: options.onOpenFailure },
    });
    this.readings = new SessionReadings({
      ...{ folder: this.folder, clock, network: this.network, client: this.client, store: this.store },
      ...{ readers: this.readers, remoteTimeoutMs: this.remoteTimeoutMs, buildPackage: this.buildPackage },
      ...{ shownProposals: this.shownProposals, about: options.about },
    });
  }

  static async open(options: SessionOptions): Promise<Session> {
    const { folder, clock = systemClock, write = false, quota, onError } = options;
    if (write) await createDataFolder(folder);
    else {
      await expectDataFolder(folder);
      await expectDatabase(folder);
    }
    const objects = await ObjectSet.open({ folder, clock, write, quota, onError });
    const report = onError === undefined ? {} : { onError };
    return Session.openOn(options, {
      objects,
      openTrust: (key) => openTrust(folder.path, { key, clock, ...report }),
    });
  }

  /** Opens a session whose objects and trust are elsewhere; its folder, which exists, has mirrors and caches. */
  static async openOn(options: SessionOptions, backend: SessionBackend): Promise<Session> {
    const { objects } = backend;
    let session: Session | undefined;
    try {
      // A Secret is read when the first statement is signed, by the session that signs.
      const key = signingKeyOf(options.signing ?? {}, () => session?.readers.signingSecret?.list()[0]);
      const trust = await backend.openTrust(key);
      session = new Session(options, options.clock ?? systemClock, objects, trust);
      const { readers } = session;
      const stop = () => void readers.stop();
      options.signal?.addEventListener('abort', stop);
      // Policies must be read before the first decision.
      await readers.start().finally(() => options.signal?.removeEventListener('abort', stop));
      options.signal?.throwIfAborted();
      return session;
    } catch (error) {
      await (session ?? objects).close();
      throw error;
    }
  }

  /** Repositories in a process without their controller. */
  #onDemand(storage: Storage): Storage {
    const { kind, apiVersion } = repositoryKind;
    if (storage.kind.kind !== kind || storage.kind.apiVersion !== apiVersion) return storage;
    const inner = storage as unknown as Storage<Repository>;
    const { store, clock, remoteTimeoutMs } = this;
    const open = (id: string, signal: AbortSignal) => this.repositories.open(id, signal);
    const policies = async (object: Stored<Repository>) => {
      await this.readers.repositories.refresh(keyOf(object).namespace);
      return this.readers.repositoryPolicies.report(object);
    };
    return new OnDemandRepositories(inner, { store, clock, remoteTimeoutMs, open, policies }) as unknown as Storage;
  }

  /** For calls of the store, with why. */
  context(reason?: string): RequestContext {
    const warn = this.#onWarning;
    return {
      ...{ actor: this.actor, face: 'cli' },
      ...(reason === undefined ? {} : { reason }),
      ...(warn === undefined ? {} : { warn }),
    };
  }

  /** From now on clients may list revisions: a revision that arrives later is an event for them. */
  endInitialPhase(): void {
    if (this.#memory !== undefined) this.#memory.versions.quiet = false;
    const registered = new Set(this.readers.repositories.list().map((object) => keyText(keyOf(object))));
    this.#revisions.forgetMissing((repository) => registered.has(repository));
    this.log.forgetUnkept();
    this.#revisions.startEvaluations();
  }

  /** Evaluates the pending revisions again that a change of policies or of a Freeze concerns. */
  repeatEvaluations(change: RuleChange): void {
    const { namespace } = change;
    const { informer } = this.readers.repositories;
    const sharing = (repository: Stored<Repository>) => sharingRepositories(this.readers.sharing, repository);
    const repositories = namespace === undefined ? informer.list() : informer.inNamespace(namespace);
    this.#revisions.repeatEvaluations(concernedRevisions(change, { repositories, sharing }));
  }

  /** True for an object that is unchanged since an earlier process. */
  isUnchangedSinceStart({ metadata }: Stored): boolean {
    return BigInt(metadata.resourceVersion) <= this.#startVersion;
  }

  /** True for a revision that an earlier process knew as it is now. */
  wasKnown(revision: PackageRevision): boolean {
    const known = this.#memory?.versions.get(revisionId(revision));
    return known !== undefined && BigInt(known.resourceVersion) <= this.#startVersion;
  }

  /** Forwards a note once. */
  note(text: string | undefined): void {
    if (text === undefined || this.#notes.has(text)) return;
    this.#notes.add(text);
    this.#onNote(text);
  }

  /** Its Lease waits for it: what cannot be written soon is announced in the ledger, and is recognised by the next leader. */
  async #flushLedger(): Promise<void> {
    const late = Promise.withResolvers<void>();
    const cancel = this.clock.schedule(MAX_LEDGER_FLUSH_MS, late.resolve);
    try {
      await Promise.race([this.trust.ledger.flushed?.(), late.promise]);
    } finally {
      cancel();
    }
  }

  /** Saves caches and ends child processes. */
  async close(): Promise<void> {
    // They follow the log. What is still being decided reads the objects by lists.
    await this.readers.stop();
    this.log.close();
    await closeAll([
      () => this.renderer.close(),
      () => this.restrictedRenderer.close(),
      () => this.store.close(),
      () => this.#flushLedger(),
      () => this.trust.pushes?.close(),
      () => this.trust.ledger.close(),
      () => this.objects.close(),
    ]);
  }
}

/** Sessions that only read the objects see what others have written, and keep nothing. */
function freezeMemory({ write = false }: SessionOptions, { database }: SessionObjects): FreezeMemory | undefined {
  const notes = database?.notes('freezes');
  return write || notes === undefined ? notes : new Map(notes.entries());
}

/** Runs all steps, in order. Throws the error of the first one that failed. */
async function closeAll(steps: readonly (() => Promise<void> | void | undefined)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const step of steps)
    try {
      await step();
    } catch (error) {
      failures.push(error);
    }
  if (failures.length > 0) throw failures[0];
}
