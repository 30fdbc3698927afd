import type { GroupVersionKind, KubernetesObject, ObjectKey, ObjectMeta, Stored } from '../object/object.ts';
import type { RequestContext } from '../object/request-context.ts';
import type { MergePatch } from '../patch/merge-patch.ts';
import type { Kind } from '../schema/kind.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldSelector } from '../selector/field-selector.ts';
import type { LabelSelector } from '../selector/label-selector.ts';

/** Selects objects of a kind: all namespaces, all labels and all fields where a selector is absent. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  /**
   * Only fields of the kind's `selectableFields`, `metadata.name` and `metadata.namespace`; other fields are
   * BadRequest.
   */
  readonly fieldSelector?: FieldSelector | undefined;
}

export interface ListOptions extends Selection {
  /** Maximum number of items, a storage may return fewer; `continue` returns the next ones. */
  readonly limit?: number | undefined;
  /** `continue` of the page before. The other options must be those of the first page. */
  readonly continue?: string | undefined;
}

export interface ListResult<T extends KubernetesObject> {
  /**
   * Sorted by namespace, then name, by UTF-16 code unit. Pages of all namespaces that a kube-apiserver returns are in the order of its keys,
   * in which the namespace `a-b` is before `a`.
   */
  readonly items: readonly Stored<T>[];
  /**
   * The version of the state of `items`, on every page the same. A watch from this version omits and repeats no event.
   */
  readonly resourceVersion: string;
  /** Given if there are more items. */
  readonly continue?: string;
  /** Number of remaining items, where the storage knows it. */
  readonly remainingItemCount?: number;
}

export interface WatchOptions extends Selection {
  /** Events after this version; from a list, an object, an event or a bookmark of the same storage. */
  readonly resourceVersion: string;
  /** Ends the watch without an error. A watch without an abort lasts until it fails. */
  readonly signal: AbortSignal;
}

/**
 * MODIFIED shows an object that was and is in the selection. One that enters the selection is ADDED, one that leaves it
 * is DELETED and shows the last state that was in it, with the resourceVersion of the event. A BOOKMARK states that
 * everything up to its version has been delivered.
 */
export type WatchEvent<T extends KubernetesObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED'; readonly object: Stored<T> }
  | { readonly type: 'BOOKMARK'; readonly resourceVersion: string };

/** The treatment of objects with an owner reference to a deleted object. */
export type PropagationPolicy = 'Background' | 'Foreground' | 'Orphan';

/**
 * Delays the deletion of an owner until its dependents are deleted or no longer refer to it; the garbage collector removes
 * it.
 */
export const FOREGROUND_FINALIZER = 'foregroundDeletion';
export const ORPHAN_FINALIZER = 'orphan';

/** The verbs that a client may use on the objects of a kind. */
export const ALL_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;
export type Verb = (typeof ALL_VERBS)[number];

export interface DeleteOptions {
  /** Default Background. Foreground and Orphan put a finalizer on the object, which the garbage collector removes. */
  readonly propagationPolicy?: PropagationPolicy | undefined;
  /** Preconditions; if one does not match, nothing is deleted (Conflict). */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/** The fields that a manager applies, and no more. */
export type AppliedConfiguration = { readonly metadata: ObjectMeta } & Readonly<Record<string, unknown>>;

export interface ApplyOptions {
  /** The name that the writer gives itself; it owns the fields that it applies. */
  readonly manager: string;
  /** Takes fields over from other managers. Without it, a field that another one owns with another value is a Conflict. */
  readonly force?: boolean | undefined;
  /** The part of the object that is written. Default: all but the sub-resources. */
  readonly subResource?: string | undefined;
}

/** A sub-resource that is only read: its content is computed from the object for each request. */
export interface ReadOnlySubResource {
  readonly name: string;
  /** Of what it returns. */
  readonly kind: GroupVersionKind;
  /** Of what it returns, made when a document needs it. */
  readonly schema: () => StructuralSchema;
  /** Query parameters of a request, all of them optional. */
  readonly parameters: readonly { readonly name: string; readonly description: string }[];
  /** NotFound if there is no such object; InvalidInput for a parameter that cannot be used. */
  read(context: RequestContext, key: ObjectKey, parameters: URLSearchParams): Promise<KubernetesObject>;
}

/**
 * The port to the durable objects of one kind.
 *
 * Contract for every implementation:
 * - a write is durable, visible to reads and in the event log when its promise resolves;
 * - returned objects are deeply frozen; passed objects are never changed or kept by reference unfrozen;
 * - passed objects were validated and defaulted by `Kind` (the client and the server do so), so a storage validates only
 *   what needs the stored state;
 * - a namespaced kind's key always carries its namespace, a cluster-scoped kind's key never does;
 * - it sets uid, resourceVersion, creationTimestamp, deletionTimestamp and generation itself and ignores what a client
 *   puts there, save for the preconditions named below; an update that sets deletionTimestamp is an InvalidInput;
 * - every write changes resourceVersion, and every change of an object, by any actor, makes exactly one event, in the
 *   order of the versions. A write that changes nothing returns the stored object and makes no event;
 * - a slow or stuck watcher never delays a writer or another watcher.
 *
 * Over a kube-apiserver (`src/kubernetes/storage`), its server keeps the contract. What differs there:
 * - the server validates and defaults, with the schema and the rules of the installed definition. The kind's strategy does not run, so
 *   `updatesIgnoreStatusWrites` has no effect;
 * - `update` replaces the fields that `Kind` does not know by nothing, as typed clients in Go do; `patch` and `apply` keep them;
 * - an update without a version reads the present one first, and retries after a lost race;
 * - a dry run of a create returns an empty resourceVersion and may return a uid that the object will not have;
 * - versions of all kinds rise in one order, and a version that is not reached yet is accepted: a watch from there is silent until the
 *   server has passed it. A server that went back (restored from a backup) is noticed after 150 seconds of silence;
 * - events of an open watch wait in the connection, so that a reader falls behind later than in this process;
 * - finalizers of the propagation policy are removed by the garbage collector of the cluster;
 * - a request can fail although it took effect: Unavailable after a broken connection says nothing about a write.
 *
 * Every method may throw a SluiceError: InvalidInput (with `details` as in InvalidObject), BadRequest, Unavailable, Timeout, Busy
 * (another request works on the same object, retry later), Refused (a rule forbids it), Unsupported (the kind has no
 * such verb), Corrupt.
 */
export interface Storage<T extends KubernetesObject = KubernetesObject> {
  readonly kind: Kind<T>;
  /** Names of the sub-resources that `updateSubResource` takes; `status` among them if the kind has a status. */
  readonly subResources: readonly string[];
  /** Absent if there are none. */
  readonly readOnlySubResources?: readonly ReadOnlySubResource[];
  /** True if an update must contain the version of the object that it was made for. */
  readonly updatesNeedVersion?: boolean;
  /** True if a new object may name a resourceVersion, which is ignored; else that is refused. */
  readonly ignoresVersionOnCreate?: boolean;
  /** Verbs that clients may use; all if absent. */
  readonly verbs?: readonly Verb[];
  /**
   * True if server-side apply removes no field that its manager applied before and now omits: the manager only gives up its ownership.
   * So a file is removed with null in a merge patch, or with an update, and never by omitting it.
   */
  readonly applyNeverRemoves?: boolean;
  /** Texts for users who read objects of a namespace, or of all, as a table: states that none of the columns shows. */
  tableWarnings?(namespace: string | undefined): readonly string[];
  /**
   * Returns the object of an update for what a patch made of `live`: for storages in which a field that an update omits stays as it is,
   * while a patch that removes the field means that.
   */
  afterPatch?(live: T, patched: T): T;

  /** NotFound if there is none. */
  get(context: RequestContext, key: ObjectKey): Promise<Stored<T>>;

  /**
   * A consistent snapshot of the selection; its pages are of one state. A single object that cannot be read never fails a
   * list. Expired if `continue` is too old: list again.
   */
  list(context: RequestContext, options?: ListOptions): Promise<ListResult<T>>;

  /**
   * Yields every change after `options.resourceVersion`, in order, each once. It starts at the first `next()`, without
   * losing changes. Ends without an error when the signal aborts or the storage closes. Throws Expired if the version is unknown
   * or too old, or if the watcher fell behind the bounded buffer: then list again and watch from there. Any other error:
   * watch again from the last received version. Sends a BOOKMARK periodically, even without changes, so that a client can
   * detect a broken watch.
   */
  watch(context: RequestContext, options: WatchOptions): AsyncIterable<WatchEvent<T>>;

  /**
   * Stores a new object and returns it. `metadata.generateName` gives a name where `name` is empty; a kind whose names
   * are derived (`strategy.serverNamed`) ignores both. A status is ignored if the kind has the sub-resource. AlreadyExists if the
   * key is taken.
   */
  create(context: RequestContext, object: T): Promise<Stored<T>>;

  /**
   * Replaces an object, its status excepted if the kind has the sub-resource. NotFound if there is none (update never
   * creates). Conflict if `metadata.resourceVersion` or `metadata.uid` is given and is not the stored one; without a
   * resourceVersion the last writer wins. `generation` grows by one with a change outside metadata and status. While
   * deletionTimestamp is set no finalizer may be added; taking away the last one deletes the object: the DELETED event is
   * then the only event.
   */
  update(context: RequestContext, object: T): Promise<Stored<T>>;

  /**
   * Replaces the fields of the sub-resource and ignores the others of `object`: `status` owns the status; other
   * sub-resources are specific to the implementation (`approval` owns the lifecycle of a package revision).
   * Preconditions as in update. A name that is not in `subResources` is Unsupported.
   */
  updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>>;

  /**
   * Deletes, or, if there are finalizers, sets deletionTimestamp (once; a second delete changes nothing) and leaves the
   * deletion to the client that removes the last finalizer. Returns the last state. NotFound, Conflict as above.
   */
  delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<T>>;

  /**
   * Merges a patch (RFC 7386) into an object, or into a sub-resource of it, in one step; a lost race is tried again unless the patch
   * contains a resourceVersion. Fields that `Kind` does not know stay. Absent where a client reads, merges and updates.
   */
  patch?(context: RequestContext, key: ObjectKey, patch: MergePatch, subResource?: string): Promise<Stored<T>>;

  /**
   * Server-side apply. Absent where the API server of the registry executes it, which knows the name that each client gives itself.
   */
  apply?(context: RequestContext, configuration: AppliedConfiguration, options: ApplyOptions): Promise<Stored<T>>;
}
