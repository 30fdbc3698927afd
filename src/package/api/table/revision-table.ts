import type { Clock } from '../../../foundation/time/clock.ts';
import {
  packageRevisionKind,
  type PackageRevision as RevisionObject,
} from '../../../resource/kinds/porch/package-revision.ts';
import type { ManagedFieldsEntry, ObjectKey, Stored } from '../../../resource/object/object.ts';
import type { RequestContext } from '../../../resource/object/request-context.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import { ObjectIndex } from '../../../resource/storage/memory/object-index.ts';
import { topicOf } from '../../../resource/storage/memory/object-storage.ts';
import type { EventLog } from '../../../resource/watch/event-log.ts';
import type { IndexKey } from '../../../resource/watch/index-key.ts';
import type { LoggedChange } from '../../../resource/watch/log-entry.ts';
import type { IndexChange } from '../../index/state/index-delta.ts';
import { isPlaceholder, type PackageRevision, revisionId } from '../../model/revision/package-revision.ts';
import type { PackageRepository } from '../../store/package-repository.ts';
import type { ConcernedRevisions } from '../../store/policies/concerned-revisions.ts';
import type { RevisionStore } from '../../store/revision-store.ts';
import type { ApprovalHolds } from '../../store/unmet-rules.ts';
import type { FieldOwners } from '../objects/field-owners.ts';
import { isUnpublished } from '../objects/ready-condition.ts';
import { NOT_EVALUATED, type Readiness, RevisionEntry } from '../objects/revision-entry.ts';
import { GateEvaluations } from './gate-evaluations.ts';
import type { RevisionVersions } from './revision-versions.ts';

/** Under this name changes of package revisions are logged. */
export const REVISION_TOPIC = topicOf(packageRevisionKind);

/** A write of one revision, from the request to the entry in the table. */
export interface TableWrite {
  /**
   * Returns the entry of the revision after a write, with its gates evaluated; undefined if it was deleted. The entry of a dry run is
   * in no table.
   */
  finish(made: PackageRevision | undefined): Promise<RevisionEntry | undefined>;
  /** Ends the write, whether it succeeded or not. */
  end(): void;
}

/** The revisions of a store with the versions that they have as objects, and their changes in the event log. */
export class RevisionTable {
  readonly #store: RevisionStore;
  readonly #log: EventLog;
  readonly #owners: FieldOwners;
  /** By id. */
  readonly #byId = new Map<string, RevisionEntry>();
  readonly #namespaces = new Set<string>();
  readonly #index = new ObjectIndex<RevisionEntry>((entry) => entry.sharedKeys());
  /** Owners of fields that a write under way brings along, by the id of the revision. */
  readonly #pending = new Map<string, readonly ManagedFieldsEntry[]>();

  readonly #versions: RevisionVersions | undefined;
  /** Ids of revisions of earlier processes, by the id of the repository, as long as it has not arrived. */
  readonly #remembered = new Map<string, string[]>();
  readonly #gates: GateEvaluations;
  /** True if revisions changed while no process ran and watchers were not notified. */
  #hasUnreportedChanges = false;

  /**
   * Without `versions`, watches of earlier processes cannot resume: no events exist for changes in Git in the meantime.
   */
  constructor(
    store: RevisionStore,
    log: EventLog,
    clock: Clock,
    owners: FieldOwners,
    { versions, holds }: { readonly versions?: RevisionVersions; readonly holds?: ApprovalHolds | undefined } = {},
  ) {
    this.#store = store;
    this.#gates = new GateEvaluations({
      ...{ store, clock, holds },
      find: (id) => this.#byId.get(id),
      onEvaluated: (id, ready) => this.#showReady(id, ready),
    });
    this.#log = log;
    this.#owners = owners;
    this.#versions = versions;
    if (versions === undefined) log.expire(REVISION_TOPIC);
    for (const name of versions?.names() ?? []) {
      // Earlier versions kept names alone, without the namespace.
      if (!name.includes('/')) {
        versions?.delete(name);
        continue;
      }
      // The name of a repository is a DNS label, as is that of a namespace.
      const repository = name.split('.', 1)[0] ?? '';
      const names = this.#remembered.get(repository);
      if (names === undefined) this.#remembered.set(repository, [name]);
      else names.push(name);
    }
    this.#take(store.list().map((after) => ({ before: undefined, after })));
    for (const { id } of store.repositories()) this.#arrive(id);
    store.subscribe((changes) => this.#take(changes));
    store.onArrival((repository) => this.#arrive(repository));
    store.onReplacement((repository) => this.#move(repository));
  }

  /** The entry of a key; a key without a namespace finds any. */
  get({ name, namespace }: ObjectKey): RevisionEntry | undefined {
    const namespaces = namespace === undefined ? this.#namespaces : [namespace];
    for (const one of namespaces) {
      const found = this.#byId.get(revisionId({ namespace: one, name }));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Entries in the order of lists: all, or those under a key. */
  select(indexKey: IndexKey | undefined): RevisionEntry[] {
    return this.#index.select(indexKey);
  }

  /** Keeps the evaluation of gates up to date from here on; without it a gate is evaluated when a client reads one object. */
  startEvaluations(): void {
    this.#gates.start(this.#byId);
  }

  /** Evaluates the gates and rules of pending revisions again that a change concerns. */
  repeatEvaluations(concerned: ConcernedRevisions): void {
    this.#gates.repeat(concerned);
  }

  /** The entry of a key once its gates are evaluated. */
  async evaluated(key: ObjectKey): Promise<RevisionEntry | undefined> {
    const entry = this.get(key);
    if (entry === undefined) return undefined;
    await this.#gates.evaluate(revisionId(entry.revision));
    return this.get(key);
  }

  /** Clients that have seen the object get it as a change; otherwise the object will be made with it. */
  #showReady(id: string, ready: Readiness): void {
    const known = this.#byId.get(id);
    if (known === undefined) return;
    const isSame = sameValue(known.ready.condition, ready.condition) && sameValue(known.ready.approval, ready.approval);
    if (!known.isSeen || isSame) {
      known.noteReady(ready);
      return;
    }
    this.#log.append<RevisionObject>(REVISION_TOPIC, (version) => {
      const entry = known.withReady(ready, version);
      this.#keep(id, entry);
      return new Change(known, entry);
    });
  }

  /**
   * Begins a write of a revision, which the caller finishes with what the store returned, and ends in any case. `managedFields` are kept
   * with what it changes; undefined leaves them as they are.
   */
  beginWrite(
    { dryRun, actor }: RequestContext,
    id: string,
    managedFields: readonly ManagedFieldsEntry[] | undefined,
  ): TableWrite {
    if (dryRun === true)
      return { finish: async (made) => made && this.#predicted(made, managedFields), end: () => undefined };
    // Of two writes the store refuses the second, which must not speak for the first.
    let isOwner = managedFields !== undefined && !this.#pending.has(id);
    if (isOwner && managedFields !== undefined) this.#pending.set(id, managedFields);
    const before = this.#byId.get(id);
    const end = () => {
      if (isOwner) this.#pending.delete(id);
      isOwner = false;
    };
    const finish = async (made: PackageRevision | undefined) => {
      const after = this.#byId.get(id);
      if (before !== undefined && made?.etag === after?.revision.etag) after?.noteOwnStep(actor.name, before);
      end();
      this.#settle(id, managedFields);
      await this.#gates.evaluate(id);
      return this.#byId.get(id);
    };
    return { finish, end };
  }

  /** Field owners that changed without a change in Git are a separate change. */
  #settle(id: string, managedFields: readonly ManagedFieldsEntry[] | undefined): void {
    const entry = this.#byId.get(id);
    if (entry === undefined || managedFields === undefined) return;
    const { uid } = entry.revision;
    if (sameValue(this.#owners.get(uid) ?? [], managedFields)) return;
    this.#owners.set(uid, someOf(managedFields));
    this.#log.append<RevisionObject>(
      REVISION_TOPIC,
      // Its repository may have been unregistered just before.
      (version) => new Change(entry, this.#put(entry.revision, entry.repository, version)),
    );
  }

  #predicted(revision: PackageRevision, managedFields: readonly ManagedFieldsEntry[] | undefined): RevisionEntry {
    const known = this.#byId.get(revisionId(revision));
    const fields = someOf(managedFields ?? this.#owners.get(revision.uid) ?? []);
    const repository = this.#store.repositoryOf(revision);
    return new RevisionEntry(revision, repository, known?.resourceVersion ?? '', { managedFields: fields });
  }

  #take(changes: readonly IndexChange[]): void {
    for (const { before, after } of changes) {
      if (after === undefined) {
        if (before !== undefined) this.#drop(before);
        continue;
      }
      const repository = this.#store.repositoryOf(after);
      const coming = this.#pending.get(revisionId(after));
      if (coming !== undefined) this.#owners.set(after.uid, someOf(coming));
      const known = this.#byId.get(revisionId(after));
      const same = known === undefined ? this.#sameSince(after) : undefined;
      this.#log.append<RevisionObject>(
        REVISION_TOPIC,
        (version) => new Change(known, this.#put(after, repository, same ?? version)),
        same === undefined,
      );
    }
    for (const { before, after } of changes) {
      const revision = after ?? before;
      if (revision !== undefined && isPlaceholder(revision)) this.#noteMain(revision);
    }
  }

  /** Others may conflict with an edit of their package on the main branch, or not any more. */
  #noteMain({ namespace, key }: PackageRevision): void {
    for (const { name } of this.#store.list({ repository: `${namespace}/${key.repository}`, package: key.package })) {
      const id = revisionId({ namespace, name });
      const entry = this.#byId.get(id);
      if (entry !== undefined) this.#gates.noteMain(id, entry);
    }
  }

  /** The version of a revision from before this process, if it is unchanged and no client has observed its absence. */
  #sameSince(revision: PackageRevision): string | undefined {
    const before = this.#versions?.get(revisionId(revision));
    if (before === undefined) return undefined;
    if (before.etag === revision.etag) return this.#versions?.quiet === true ? before.resourceVersion : undefined;
    // The previous state is unknown, and so are the selections that it matched.
    this.#hasUnreportedChanges = true;
    return undefined;
  }

  /** Revisions that the repository has as before keep their objects. The others are announced. */
  #move(repository: PackageRepository): void {
    for (const revision of repository.index.all()) {
      const known = this.#byId.get(revisionId(revision));
      if (known?.revision.etag === revision.etag) known.move(revision, repository);
    }
  }

  #arrive(repository: string): void {
    this.#forgetMissingOf(repository);
    this.#expireUnreported();
  }

  /**
   * Forgets the revisions of earlier processes that are not here, save those whose repository is still awaited. No events
   * can report what happened while no process ran, so that watchers list again.
   */
  forgetMissing(isAwaited: (repository: string) => boolean): void {
    for (const repository of [...this.#remembered.keys()])
      if (!isAwaited(repository)) this.#forgetMissingOf(repository);
    this.#expireUnreported();
  }

  #forgetMissingOf(repository: string): void {
    for (const name of this.#remembered.get(repository) ?? []) {
      if (this.#byId.has(name)) continue;
      this.#versions?.delete(name);
      this.#hasUnreportedChanges = true;
    }
    this.#remembered.delete(repository);
  }

  #expireUnreported(): void {
    if (this.#hasUnreportedChanges) this.#log.expire(REVISION_TOPIC);
    this.#hasUnreportedChanges = false;
  }

  #put(revision: PackageRevision, repository: PackageRepository, resourceVersion: string): RevisionEntry {
    const id = revisionId(revision);
    const managedFields = this.#owners.get(revision.uid);
    const known = this.#byId.get(id);
    const parts = { managedFields, ready: readyAfter(known, revision), replaces: known?.resourceVersion };
    const entry = new RevisionEntry(revision, repository, resourceVersion, parts);
    this.#keep(id, entry);
    this.#gates.noteChange(id, entry);
    return entry;
  }

  #keep(id: string, entry: RevisionEntry): void {
    const { revision, repository, resourceVersion } = entry;
    this.#versions?.set(id, { etag: revision.etag, resourceVersion });
    this.#byId.set(id, entry);
    this.#namespaces.add(revision.namespace);
    this.#index.set({ namespace: repository.namespace, name: revision.name }, entry);
  }

  #drop(revision: PackageRevision): void {
    const { name, uid } = revision;
    const id = revisionId(revision);
    this.#owners.set(uid, undefined);
    const known = this.#byId.get(id);
    if (known === undefined) return;
    this.#gates.drop(id, known);
    this.#versions?.delete(id);
    this.#byId.delete(id);
    this.#index.delete({ namespace: known.repository.namespace, name });
    this.#log.append<RevisionObject>(REVISION_TOPIC, () => new Change(known, undefined));
  }
}

/** Returns the displayed state of gates before they are evaluated again: closed, never open. */
function readyAfter(known: RevisionEntry | undefined, revision: PackageRevision): Readiness {
  if (known === undefined || !isUnpublished(revision)) return NOT_EVALUATED;
  if (known.revision.etag === revision.etag && known.revision.uid === revision.uid) return known.ready;
  const { condition } = known.ready;
  return condition?.status === 'False' ? { condition, isCurrent: false } : NOT_EVALUATED;
}

function someOf(entries: readonly ManagedFieldsEntry[]): readonly ManagedFieldsEntry[] | undefined {
  return entries.length === 0 ? undefined : entries;
}

/** The change as stored in the log. */
class Change implements LoggedChange<RevisionObject> {
  readonly #before: RevisionEntry | undefined;
  readonly #after: RevisionEntry | undefined;

  constructor(before: RevisionEntry | undefined, after: RevisionEntry | undefined) {
    this.#before = before;
    this.#after = after;
  }

  get before(): Stored<RevisionObject> | undefined {
    return this.#before?.object;
  }

  get after(): Stored<RevisionObject> | undefined {
    return this.#after?.object;
  }

  indexKeys(): Set<IndexKey> {
    return new Set([...(this.#before?.indexKeys() ?? []), ...(this.#after?.indexKeys() ?? [])]);
  }
}
