import type { GroupVersionKind, KubernetesObject, ObjectKey, Stored } from '../object/object.ts';
import type { RequestContext } from '../object/request-context.ts';
import type { Kind } from '../schema/kind.ts';
import type { StructuralSchema } from '../schema/structural/structural-schema.ts';
import type { FieldSelector } from '../selector/field-selector.ts';
import type { LabelSelector } from '../selector/label-selector.ts';

/** Which objects of a kind: all namespaces, all labels and all fields where a selector is absent. */
export interface Selection {
  readonly namespace?: string | undefined;
  readonly labelSelector?: LabelSelector | undefined;
  /** Only fields of the kind's `selectableFields`, `metadata.name` and `metadata.namespace`; others are BadRequest. */
  readonly fieldSelector?: FieldSelector | undefined;
}

export interface ListOptions extends Selection {
  /** At most so many items; the rest by `continue`. */
  readonly limit?: number | undefined;
  /** `continue` of the page before. The other options must be those of the first page. */
  readonly continue?: string | undefined;
}

export interface ListResult<T extends KubernetesObject> {
  /** Sorted by namespace, then name, by UTF-16 code unit. */
  readonly items: readonly Stored<T>[];
  /** The state that `items` shows, on every page the same. A watch from here misses nothing and repeats nothing. */
  readonly resourceVersion: string;
  /** Given if there are more items. */
  readonly continue?: string;
  /** How many more there are. */
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

/** What happens to the objects that name a deleted one as their owner. */
export type PropagationPolicy = 'Background' | 'Foreground' | 'Orphan';

/** Held by an owner until its dependents are gone, or until they no longer name it; the garbage collector removes them. */
export const FOREGROUND_FINALIZER = 'foregroundDeletion';
export const ORPHAN_FINALIZER = 'orphan';

/** What a client may do with the objects of a kind. */
export const ALL_VERBS = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'] as const;
export type Verb = (typeof ALL_VERBS)[number];

export interface DeleteOptions {
  /** Default Background. Foreground and Orphan put a finalizer on the object, which the garbage collector removes. */
  readonly propagationPolicy?: PropagationPolicy | undefined;
  /** What must hold, or nothing is deleted (Conflict). */
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
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
 * - objects that come out are deeply frozen; objects that go in are never changed or kept by reference unfrozen;
 * - objects that go in were validated and defaulted by `Kind` (the client and the server do so), so a storage judges only
 *   what needs the stored state;
 * - a namespaced kind's key always carries its namespace, a cluster-scoped kind's key never does;
 * - it sets uid, resourceVersion, creationTimestamp, deletionTimestamp and generation itself and ignores what a client
 *   puts there, save for the preconditions named below;
 * - every write changes resourceVersion, and every change of an object, by any actor, makes exactly one event, in the
 *   order of the versions. A write that changes nothing returns the stored object and makes no event;
 * - a slow or stuck watcher never delays a writer or another watcher.
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
  /** True if an update must name the version that it was made for. */
  readonly updatesNeedVersion?: boolean;
  /** True if a new object may name a resourceVersion, which is ignored; else that is refused. */
  readonly ignoresVersionOnCreate?: boolean;
  /** What clients may do; all verbs if absent. */
  readonly verbs?: readonly Verb[];
  /**
   * True if server-side apply removes nothing that its manager applied before and now leaves out: a manager that leaves a field out
   * only gives up its ownership. So a file is removed by naming it with null in a merge patch, or by an update, and never by leaving it out.
   */
  readonly applyNeverRemoves?: boolean;

  /** NotFound if there is none. */
  get(context: RequestContext, key: ObjectKey): Promise<Stored<T>>;

  /**
   * A consistent snapshot of the selection; its pages are of one state. A single object that cannot be read never fails a
   * list. Expired if `continue` is too old: list again.
   */
  list(context: RequestContext, options?: ListOptions): Promise<ListResult<T>>;

  /**
   * Every change after `options.resourceVersion`, in order, each once. Nothing happens before the first `next()`, and
   * nothing is lost by that. Ends quietly when the signal aborts or the storage closes. Throws Expired if the version is
   * unknown or too old, or if the watcher fell behind the bounded buffer: then list again and watch from there. Any other
   * error: watch again from the last version seen. Sends a BOOKMARK now and then, also when nothing happens, so that a
   * silent watch is a broken watch.
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
   * Replaces what the sub-resource owns and ignores the rest of `object`: `status` owns the status; others are the
   * implementation's own (`approval` owns the lifecycle of a package revision). Preconditions as in update. A name that
   * is not in `subResources` is Unsupported.
   */
  updateSubResource(context: RequestContext, name: string, object: T): Promise<Stored<T>>;

  /**
   * Deletes, or, if there are finalizers, sets deletionTimestamp (once; a second delete changes nothing) and leaves the
   * rest to the client that removes the last finalizer. Returns the last state. NotFound, Conflict as above.
   */
  delete(context: RequestContext, key: ObjectKey, options?: DeleteOptions): Promise<Stored<T>>;
}
