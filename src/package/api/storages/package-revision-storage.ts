import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../../foundation/time/clock.ts';
import {
  packageRevisionKind,
  type RevisionDeployment,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import { keyText, type ObjectKey, type Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import type { Kind } from '../../../resource/schema/kind.ts';
import { ListPages } from '../../../resource/storage/memory/list-pages.ts';
import {
  checkPreconditions,
  isDeletionDelayed,
  markedForDeletion,
  notFound,
  resourceName,
} from '../../../resource/storage/memory/object-rules.ts';
import { compileSelection } from '../../../resource/storage/selection.ts';
import type {
  DeleteOptions,
  ListOptions,
  ListResult,
  ReadOnlySubResource,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../../resource/storage/storage.ts';
import type { EventLog } from '../../../resource/watch/event-log.ts';
import { narrowestKey } from '../../../resource/watch/index-key.ts';
import { isComputedType } from '../../model/gates/ready-type.ts';
import type { IssuedCondition } from '../../model/gates/verdict.ts';
import { DEFAULT_NAMESPACE, revisionName } from '../../model/identity/identity.ts';
import { packagePath } from '../../model/identity/layout.ts';
import { type FreezeRule, freezeWarnings } from '../../model/policy/approval-rules.ts';
import { ownersWritten } from '../../model/record/owners.ts';
import { emptyRecord } from '../../model/record/record.ts';
import { type PackageRevision, revisionId } from '../../model/revision/package-revision.ts';
import type { RevisionUpdate } from '../../plan/update.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { ApprovalHolds } from '../../store/unmet-rules.ts';
import { type FieldOwners, memoryFieldOwners } from '../objects/field-owners.ts';
import type { RevisionEntry } from '../objects/revision-entry.ts';
import {
  changesSelection,
  type ReadSelectionCheck,
  refuseSelection,
  type SelectionCheck,
} from '../requests/refuse-selection.ts';
import {
  affirmedTypeOf,
  breakGlassOf,
  changeOf,
  invalidRevision,
  kptfileOf,
  mayApprove,
  ownMetadata,
  refuseDeletion,
  refuseLateFinalizer,
  refuseManagedLabel,
  refuseOtherIdentity,
  refuseRelabelling,
  stepByApproval,
  stepByUpdate,
  warnOfIgnored,
  withApprovalRights,
} from '../requests/requested-changes.ts';
import { revisionSourceOf, sourceNames } from '../requests/revision-source-of.ts';
import { warnOfClosedGates, warnOfPublication } from '../requests/warn-of-closed-gates.ts';
import { REVISION_TOPIC, RevisionTable } from '../table/revision-table.ts';
import type { RevisionVersions } from '../table/revision-versions.ts';
import { type ComputedReadings, packageRevisionReadings } from './package-revision-readings.ts';

/** Milliseconds that a create waits for a repository that is being opened. */
const ARRIVAL_TIMEOUT_MS = 10_000;

export interface PackageStorageOptions extends ComputedReadings {
  readonly clock?: Clock;
  /** One for each kind: an object of one kind has the uid of another. Default: in memory. */
  readonly owners?: FieldOwners;
  /** Default: versions start again with the process. */
  readonly versions?: RevisionVersions;
  readonly alert?: Alert | undefined;
  readonly deployments?: ReadDeployments | undefined;
  /** Default: labels and owners decide about no approval. */
  readonly selection?: ReadSelectionCheck | undefined;
  /** Default: no plan holds a revision. */
  readonly holds?: ApprovalHolds | undefined;
  /** Default: none. */
  readonly freezes?: ReadFreezes | undefined;
}

/** The freezes that apply in a namespace, or all, also those whose end has passed. */
export type ReadFreezes = (namespace: string | undefined) => readonly FreezeRule[];

/** The targets that deliver a revision, and what their engines report. */
export type ReadDeployments = (revision: PackageRevision) => readonly RevisionDeployment[];

/** Stores a warning about a revision durably before a step that must be recorded. Throws if it cannot; then the step is not taken. */
export type Alert = (revision: Stored<RevisionObject>, reason: string, message: string) => Promise<void>;

/**
 * Package revisions as Kubernetes objects: reads show the store, writes go through the kernel.
 *
 * Errors have the texts that Porch's clients look for, after the prefix `Internal error occurred: ` that Porch puts before many of
 * them: none of these is an internal error. Only those of files have the prefix, which scripts compare as porchctl prints it.
 */
export class PackageRevisionStorage implements Storage<RevisionObject> {
  readonly kind = packageRevisionKind;
  /** Clients of Porch make a revision from the object of another one. */
  readonly ignoresVersionOnCreate = true;
  readonly subResources: readonly string[] = ['status', 'approval'];
  readonly readOnlySubResources: readonly ReadOnlySubResource[];
  /** The revisions, which the storages of files and packages share. */
  readonly table: RevisionTable;
  readonly #store: RevisionStore;
  readonly #log: EventLog;
  readonly #clock: Clock;
  readonly #alert: Alert;
  readonly #deployments: ReadDeployments;
  readonly #selection: ReadSelectionCheck;
  readonly #freezes: ReadFreezes;
  readonly #pages: ListPages<RevisionEntry, RevisionObject>;

  constructor(store: RevisionStore, log: EventLog, options: PackageStorageOptions = {}) {
    this.#store = store;
    this.#log = log;
    this.#clock = options.clock ?? systemClock;
    this.#alert = options.alert ?? (async () => undefined);
    this.table = new RevisionTable(store, log, this.#clock, options.owners ?? memoryFieldOwners(), options);
    this.readOnlySubResources = packageRevisionReadings(store, this.table, options);
    this.#deployments = options.deployments ?? (() => []);
    this.#selection = options.selection ?? (async () => () => undefined);
    this.#freezes = options.freezes ?? (() => []);
    this.#pages = new ListPages(this.#clock, (entry) => this.#shown(entry));
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<RevisionObject>> {
    const entry = await this.table.evaluated(key);
    if (entry === undefined) throw this.#absence(key);
    return this.#shown(entry);
  }

  #shown(entry: RevisionEntry): Stored<RevisionObject> {
    return entry.withDeployments(this.#deployments(entry.revision));
  }

  tableWarnings(namespace: string | undefined): readonly string[] {
    return freezeWarnings(this.#freezes(namespace), this.#clock.now());
  }

  async list(_context: RequestContext, options: ListOptions = {}): Promise<ListResult<RevisionObject>> {
    return this.listFor(this.kind, options);
  }

  watch(_context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<RevisionObject>> {
    return this.watchFor(this.kind, options);
  }

  /** The package revisions that a selection by the fields of another kind means, which has one object for each of them. */
  listFor(kind: Pick<Kind, 'selectableFields'>, options: ListOptions): ListResult<RevisionObject> {
    const narrow = narrowestKey(options, kind);
    const { labelSelector, fieldSelector } = options;
    const selective = (labelSelector?.requirements.length ?? 0) + (fieldSelector?.requirements.length ?? 0) > 0;
    const selects = compileSelection(options, kind);
    const find = () => this.table.select(narrow);
    // Without selectors the index key is all that selects, and no object has to be compared.
    return this.#pages.list(options, this.#log.version, find, selective ? selects : undefined);
  }

  watchFor(kind: Pick<Kind, 'selectableFields'>, options: WatchOptions): AsyncIterable<WatchEvent<RevisionObject>> {
    const { resourceVersion, signal } = options;
    const selects = compileSelection(options, kind);
    const indexKey = narrowestKey(options, kind);
    return this.#log.follow<RevisionObject>(REVISION_TOPIC, { resourceVersion, signal, selects, indexKey });
  }

  async create(context: RequestContext, requested: RevisionObject): Promise<Stored<RevisionObject>> {
    const approves = await mayApprove(context);
    const object = withApprovalRights(context, undefined, requested, approves);
    // This is decided first, so that planning the write does not wait for a query while it occupies a slot of the
    // repository.
    if (context.mayWriteStatus !== undefined) await context.mayWriteStatus();
    const { spec, metadata } = object;
    if (spec.lifecycle !== undefined && spec.lifecycle !== 'Draft') {
      throw invalidRevision(object, ['spec', 'lifecycle'], spec.lifecycle, 'value can be only created as Draft');
    }
    refuseManagedLabel(undefined, object);
    const source = revisionSourceOf(object);
    const namespace = metadata.namespace ?? this.#namespaceOf(spec.repository);
    const repositoryId = `${namespace}/${spec.repository}`;
    await this.#arrival(repositoryId, context);
    this.#checkNamespace(repositoryId, namespace, sourceNames(source));
    const { repository, packageName, workspaceName } = spec;
    const name = revisionName({ repository, package: packageName, workspace: workspaceName });
    if (metadata.name !== '' && metadata.name !== name)
      context.warn?.(`metadata.name ${JSON.stringify(metadata.name)} was ignored; the name is ${JSON.stringify(name)}`);
    const own = ownMetadata(object);
    const written = { ...own, ownerReferences: ownersWritten(namespace, undefined, own.ownerReferences) };
    const wanted = {
      ...{ package: packageName, workspace: workspaceName, source, kptfile: kptfileOf(object) },
      metadata: { ...written, byEditor: !approves },
    };
    if (!approves && changesSelection(undefined, object)) {
      const key = { repository, package: packageName, workspace: workspaceName };
      const path = packagePath(this.#store.repository(repositoryId).layout, packageName);
      const bare = { key, name, namespace, path, kptfile: undefined, record: emptyRecord('') };
      const check = await this.#selection({ namespace, name: repository });
      refuseSelection(context, check, bare, written);
    }
    const write = this.table.beginWrite(context, `${namespace}/${name}`, metadata.managedFields);
    try {
      const made = await write.finish(await this.#store.create(repositoryId, wanted, context));
      if (made !== undefined) return made.object;
      // It is in Git, and its repository was closed to be opened again.
      await this.#arrival(repositoryId, context);
      return this.#existing({ namespace, name }).object;
    } finally {
      write.end();
    }
  }

  /** Metadata, gates, package metadata, and the lifecycle steps that need no right to approve, in one transaction. */
  async update(context: RequestContext, requested: RevisionObject): Promise<Stored<RevisionObject>> {
    const approves = await mayApprove(context);
    const check = approves ? undefined : await this.#selectionCheck(requested);
    const entry = this.#current(requested);
    const stored = entry.object;
    const object = withApprovalRights(context, stored, requested, approves);
    refuseOtherIdentity(stored, object);
    refuseManagedLabel(stored, object);
    refuseLateFinalizer(stored, object);
    refuseRelabelling(context, stored, object, approves);
    warnOfIgnored(context, stored, object);
    const action = stepByUpdate(stored, object);
    const change = changeOf(stored, object, entry.revision, approves);
    if (!approves && changesSelection(stored, object)) {
      // Another writer changed the metadata that this request replaces.
      if (check === undefined)
        throw new SluiceError(
          'Conflict',
          `the metadata of ${entry.revision.name} has changed meanwhile; read it again and retry`,
        );
      refuseSelection(context, check, entry.revision, change?.metadata ?? {});
    }
    const finished = stored.metadata.deletionTimestamp !== undefined && change?.metadata?.finalizers?.length === 0;
    if (finished) return this.#remove(context, entry);
    return this.#write(context, entry, object, {
      ...(change === undefined ? {} : { change }),
      ...(action === undefined ? {} : { action }),
    });
  }

  async updateSubResource(
    context: RequestContext,
    name: string,
    object: RevisionObject,
  ): Promise<Stored<RevisionObject>> {
    if (!this.subResources.includes(name))
      throw new SluiceError('Unsupported', `packagerevisions have no sub-resource ${JSON.stringify(name)}`);
    const entry = this.#current(object, name === 'approval' ? context.actor.name : undefined);
    const stored = entry.object;
    if (name === 'approval') {
      const action = stepByApproval(stored.spec.lifecycle, object);
      const breakGlass = breakGlassOf(object);
      const reason = breakGlass === undefined || breakGlass.trim() === '' ? {} : { reason: breakGlass };
      if (action === undefined && stored.spec.lifecycle === 'Published') warnOfPublication(context, stored);
      const update: RevisionUpdate = {
        ...(action === undefined ? {} : { action }),
        ...(breakGlass === undefined ? {} : { breakGlass: true }),
        isUnseen: context.namesNoVersion === true || object.metadata.resourceVersion === undefined,
      };
      if (breakGlass !== undefined && action === 'approve' && context.dryRun !== true) {
        // A process that ends between the publication and its event must not leave the publication unnoticed.
        await this.#write({ ...context, ...reason, dryRun: true }, entry, object, update);
        const message = `${context.actor.name} publishes it with --break-glass: ${breakGlass}`;
        await this.#alert(stored, 'BreakGlass', message);
      }
      return this.#write({ ...context, ...reason }, entry, object, update);
    }
    const before = new Map((stored.status?.conditions ?? []).map((condition) => [condition.type, condition]));
    const after = object.status?.conditions ?? [];
    const kept = new Set(after.map((condition) => condition.type));
    const affirmed = affirmedTypeOf(object);
    const isGiven = (given: IssuedCondition) => given.type === affirmed || !sameValue(before.get(given.type), given);
    const change = {
      // A client cannot set what Sluice computes.
      conditions: (after as readonly IssuedCondition[]).filter(
        (given) => !isComputedType(given.type) && isGiven(given),
      ),
      withdraw: [...before.keys()].filter((type) => !isComputedType(type) && !kept.has(type)),
    };
    return this.#write(context, entry, object, { change });
  }

  async delete(context: RequestContext, key: ObjectKey, options: DeleteOptions = {}): Promise<Stored<RevisionObject>> {
    const approves = await mayApprove(context);
    const entry = this.#existing(key);
    const stored = entry.object;
    checkPreconditions(this.kind, stored, options);
    if (stored.spec.lifecycle === 'DeletionProposed') refuseDeletion(context, stored, approves);
    const marked = markedForDeletion(stored, options, this.#clock.now());
    if (!isDeletionDelayed(this.kind, marked)) return this.#remove(context, entry);
    if (sameValue(stored, marked)) return stored;
    // A revision that must not be deleted is not marked either.
    await this.#remove({ ...context, dryRun: true }, entry);
    const { deletionTimestamp, finalizers } = marked.metadata;
    const metadata = { ...(deletionTimestamp && { deletionTimestamp }), finalizers: [...(finalizers ?? [])] };
    return this.#write(context, entry, {}, { change: { metadata } });
  }

  /** A refusal has the form of Porch and of every Kubernetes server: what is forbidden, then why. */
  async #remove(context: RequestContext, { revision, object }: RevisionEntry): Promise<Stored<RevisionObject>> {
    const id = revisionId(revision);
    try {
      await this.#store.update(id, { action: 'delete', expectedCommit: revision.commit }, context);
      return object;
    } catch (error) {
      if (!isSluiceError(error, 'Refused')) throw error;
      const message = `${resourceName(this.kind)} ${JSON.stringify(revision.name)} is forbidden: ${error.message}`;
      throw new SluiceError('Refused', message, { cause: error, details: error.details });
    }
  }

  async #write(
    context: RequestContext,
    { revision, object: stored }: RevisionEntry,
    { metadata }: { readonly metadata?: RevisionObject['metadata'] },
    update: RevisionUpdate,
  ): Promise<Stored<RevisionObject>> {
    const id = revisionId(revision);
    // Also of a step that a freeze does not stop: the next one waits. A refusal names the freezes itself.
    if (update.action !== undefined && context.dryRun !== true) {
      const { freezes } = this.#store.repositoryOf(revision).policyFor(revision);
      for (const text of freezeWarnings(freezes, this.#clock.now())) context.warn?.(text);
    }
    const write = this.table.beginWrite(context, id, metadata?.managedFields);
    try {
      const made = await write.finish(
        await this.#store.update(id, { ...update, expectedCommit: revision.commit }, context),
      );
      if (made !== undefined && update.action !== undefined) warnOfClosedGates(context, made, update.action);
      return made?.object ?? stored;
    } finally {
      write.end();
    }
  }

  /** What a change of the metadata by which rules select depends on; undefined without such a change. It is read before the object that is written. */
  async #selectionCheck(requested: RevisionObject): Promise<SelectionCheck | undefined> {
    const { object } = this.#existing(requested.metadata);
    if (!changesSelection(object, requested)) return undefined;
    const { namespace } = object.metadata;
    const key = { ...(namespace === undefined ? {} : { namespace }), name: object.spec.repository };
    return this.#selection(key);
  }

  #existing(key: ObjectKey): RevisionEntry {
    const found = this.table.get(key);
    if (found === undefined) throw this.#absence(key);
    return found;
  }

  #absence(key: ObjectKey): SluiceError {
    return this.#store.openingError(keyText(key)) ?? notFound(this.kind, key.name);
  }

  /**
   * Returns the entry of a write after checking its preconditions. `steppedBy` is the caller of a write that only changes the
   * lifecycle.
   */
  #current({ metadata }: RevisionObject, steppedBy?: string): RevisionEntry {
    const entry = this.#existing(metadata);
    const { resourceVersion, ...rest } = metadata;
    const version =
      steppedBy === undefined
        ? entry.settledVersion(resourceVersion)
        : entry.versionForStep(steppedBy, resourceVersion);
    checkPreconditions(this.kind, entry.object, version === undefined ? rest : { ...rest, resourceVersion: version });
    return entry;
  }

  async #arrival(repositoryId: string, { signal }: RequestContext): Promise<void> {
    const timeout = AbortSignal.timeout(ARRIVAL_TIMEOUT_MS);
    await this.#store.arrival(repositoryId, signal === undefined ? timeout : AbortSignal.any([timeout, signal]));
  }

  /** Rights are granted by namespace, so source and target of a package must be repositories of its namespace. */
  #checkNamespace(repositoryId: string, namespace: string, sources: readonly string[]): void {
    this.#store.repository(repositoryId);
    for (const name of sources) this.#existing({ name, namespace });
  }

  /** Clients in the same process need not name the namespace of a repository that only one has. */
  #namespaceOf(repository: string): string {
    const found = this.#store.repositories().filter((one) => one.repository === repository);
    return found.length === 1 ? (found[0]?.namespace ?? DEFAULT_NAMESPACE) : DEFAULT_NAMESPACE;
  }
}
