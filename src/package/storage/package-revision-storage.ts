import { timestamp } from '../../foundation/clock.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { EventLog, LoggedChange } from '../../resource/event-log.ts';
import { packageRevisionKind, type PackageRevision as RevisionObject } from '../../resource/kinds/package-revision.ts';
import { deepFreeze, type ObjectKey, type Stored } from '../../resource/object.ts';
import type { RequestContext } from '../../resource/request-context.ts';
import { sameValue } from '../../resource/same-value.ts';
import { compileSelection } from '../../resource/selection.ts';
import type {
  DeleteOptions,
  ListResult,
  Selection,
  Storage,
  WatchEvent,
  WatchOptions,
} from '../../resource/storage.ts';
import type { IndexChange } from '../index/revision-index.ts';
import type { PackageRepository } from '../package-repository.ts';
import type { PackageRevision } from '../package-revision.ts';
import type { RevisionStore } from '../revision-store.ts';
import type { GivenCondition } from '../verdict.ts';
import type { RevisionChange } from '../write/change.ts';
import {
  changeOf,
  invalid,
  ownMetadata,
  refuseLateFinalizer,
  refuseManagedLabel,
  sourceOf,
  stepByApproval,
  stepByUpdate,
} from './asked-changes.ts';
import { revisionObject } from './revision-object.ts';

const TOPIC = 'porch.kpt.dev/v1alpha1/PackageRevision';

/** Package revisions as Kubernetes objects: what the store says is shown, what a client writes goes through the kernel. */
export class PackageRevisionStorage implements Storage<RevisionObject> {
  readonly kind = packageRevisionKind;
  readonly subResources: readonly string[] = ['status', 'approval'];
  readonly #store: RevisionStore;
  readonly #log: EventLog;
  readonly #entries = new Map<string, Entry>();

  constructor(store: RevisionStore, log: EventLog) {
    this.#store = store;
    this.#log = log;
    this.#take(store.list().map((after) => ({ before: undefined, after })));
    store.subscribe((changes) => this.#take(changes));
  }

  async get(_context: RequestContext, key: ObjectKey): Promise<Stored<RevisionObject>> {
    return this.#existing(key);
  }

  async list(_context: RequestContext, selection: Selection = {}): Promise<ListResult<RevisionObject>> {
    const selects = compileSelection(selection, this.kind);
    const items = Array.from(this.#entries.values(), (entry) => entry.object)
      .filter(selects)
      .sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1));
    return { items: Object.freeze(items), resourceVersion: this.#log.version };
  }

  watch(_context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<RevisionObject>> {
    return this.#log.follow<RevisionObject>(TOPIC, { ...options, selects: compileSelection(options, this.kind) });
  }

  async create(context: RequestContext, object: RevisionObject): Promise<Stored<RevisionObject>> {
    const { spec } = object;
    if (spec.lifecycle !== undefined && spec.lifecycle !== 'Draft') {
      throw invalid(object, ['spec', 'lifecycle'], spec.lifecycle, 'value can be only created as Draft');
    }
    refuseManagedLabel(undefined, object);
    const created = await this.#store.create(
      spec.repository,
      {
        package: spec.packageName,
        workspace: spec.workspaceName,
        source: sourceOf(object),
        metadata: ownMetadata(object) as unknown as NonNullable<RevisionChange['metadata']>,
      },
      context,
    );
    return this.#existing({ name: created.name });
  }

  /** Metadata, gates, package metadata, and the lifecycle steps that need no right to approve. */
  async update(context: RequestContext, object: RevisionObject): Promise<Stored<RevisionObject>> {
    const { stored, revision } = this.#current(object);
    refuseManagedLabel(stored, object);
    refuseLateFinalizer(stored, object);
    const action = stepByUpdate(stored, object);
    const change = changeOf(stored, object, revision);
    const finished = stored.metadata.deletionTimestamp !== undefined && change?.metadata?.finalizers?.length === 0;
    if (finished) return this.#remove(context, stored, revision);
    let expectedCommit = revision.commit;
    if (change !== undefined)
      expectedCommit = (await this.#store.change(revision.name, { ...change, expectedCommit }, context)).commit;
    if (action !== undefined) await this.#store.transition(revision.name, { action, expectedCommit }, context);
    return this.#existing({ name: revision.name });
  }

  async updateSubResource(
    context: RequestContext,
    name: string,
    object: RevisionObject,
  ): Promise<Stored<RevisionObject>> {
    const { stored, revision } = this.#current(object);
    if (name === 'approval') {
      const action = stepByApproval(stored.spec.lifecycle, object);
      if (action !== undefined) {
        await this.#store.transition(revision.name, { action, expectedCommit: revision.commit }, context);
      }
    } else if (name === 'status') {
      const before = new Map((stored.status?.conditions ?? []).map((condition) => [condition.type, condition]));
      const after = object.status?.conditions ?? [];
      const kept = new Set(after.map((condition) => condition.type));
      await this.#store.change(
        revision.name,
        {
          conditions: after.filter((given) => !sameValue(before.get(given.type), given)) as readonly GivenCondition[],
          withdraw: [...before.keys()].filter((type) => !kept.has(type)),
          expectedCommit: revision.commit,
        },
        context,
      );
    } else {
      throw new SluiceError('Unsupported', `packagerevisions have no sub-resource ${JSON.stringify(name)}`);
    }
    return this.#existing({ name: revision.name });
  }

  async delete(context: RequestContext, key: ObjectKey, options: DeleteOptions = {}): Promise<Stored<RevisionObject>> {
    const stored = this.#existing(key);
    check(stored, options);
    const revision = this.#store.get(key.name);
    if ((stored.metadata.finalizers?.length ?? 0) === 0) return this.#remove(context, stored, revision);
    if (stored.metadata.deletionTimestamp !== undefined) return stored;
    const deletionTimestamp = timestamp(this.#store.repository(revision.key.repository).clock.now());
    await this.#store.change(revision.name, { metadata: { deletionTimestamp } }, context);
    return this.#existing(key);
  }

  async #remove(
    context: RequestContext,
    stored: Stored<RevisionObject>,
    revision: PackageRevision,
  ): Promise<Stored<RevisionObject>> {
    await this.#store.transition(revision.name, { action: 'delete', expectedCommit: revision.commit }, context);
    return stored;
  }

  #existing(key: ObjectKey): Stored<RevisionObject> {
    const found = this.#entries.get(key.name)?.object;
    if (found === undefined || (key.namespace !== undefined && key.namespace !== found.metadata.namespace)) {
      throw new SluiceError('NotFound', `packagerevisions.porch.kpt.dev "${key.name}" not found`);
    }
    return found;
  }

  /** The stored object and revision that a write is about, if its preconditions hold. */
  #current(object: RevisionObject): { stored: Stored<RevisionObject>; revision: PackageRevision } {
    const stored = this.#existing(object.metadata);
    check(stored, object.metadata);
    return { stored, revision: this.#store.get(stored.metadata.name) };
  }

  #take(changes: readonly IndexChange[]): void {
    for (const { before, after } of changes) {
      const name = after?.name ?? before?.name ?? '';
      const known = this.#entries.get(name);
      if (after === undefined && known === undefined) continue;
      this.#log.append<RevisionObject>(TOPIC, (resourceVersion) => {
        const next =
          after === undefined
            ? undefined
            : new Entry(after, this.#store.repository(after.key.repository), resourceVersion);
        if (next === undefined) this.#entries.delete(name);
        else this.#entries.set(name, next);
        return new Change(known, next);
      });
    }
  }
}

/** A revision, and its object once somebody asks for it: most of tens of thousands are never looked at. */
class Entry {
  readonly #revision: PackageRevision;
  readonly #repository: PackageRepository;
  readonly #resourceVersion: string;
  #object: Stored<RevisionObject> | undefined;

  constructor(revision: PackageRevision, repository: PackageRepository, resourceVersion: string) {
    this.#revision = revision;
    this.#repository = repository;
    this.#resourceVersion = resourceVersion;
  }

  get object(): Stored<RevisionObject> {
    this.#object ??= this.#make();
    return this.#object;
  }

  #make(): Stored<RevisionObject> {
    const object = revisionObject(this.#revision, this.#repository);
    const metadata = { ...object.metadata, resourceVersion: this.#resourceVersion };
    // What it shares with the index is never changed there either.
    return deepFreeze({ ...object, metadata }) as Stored<RevisionObject>;
  }
}

/** What the log keeps of a change. */
class Change implements LoggedChange<RevisionObject> {
  readonly #before: Entry | undefined;
  readonly #after: Entry | undefined;

  constructor(before: Entry | undefined, after: Entry | undefined) {
    this.#before = before;
    this.#after = after;
  }

  get before(): Stored<RevisionObject> | undefined {
    return this.#before?.object;
  }

  get after(): Stored<RevisionObject> | undefined {
    return this.#after?.object;
  }
}

function check(
  stored: Stored<RevisionObject>,
  expected: { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined },
): void {
  const { uid, resourceVersion, name } = stored.metadata;
  const moved = expected.resourceVersion !== undefined && expected.resourceVersion !== resourceVersion;
  if (moved || (expected.uid !== undefined && expected.uid !== uid)) {
    throw new SluiceError(
      'Conflict',
      `Operation cannot be fulfilled on packagerevisions.porch.kpt.dev "${name}": the object has been modified; please apply your changes to the latest version and try again`,
    );
  }
}
