import type { KubernetesObject, ObjectKey, Stored } from '../object/object.ts';
import type { Actor, EntryPoint } from '../object/request-context.ts';
import type { GroupMember } from '../object/request-group.ts';
import type { MergePatch } from '../patch/merge-patch.ts';
import type { Kind } from '../schema/kind.ts';
import type { FieldSelector } from '../selector/field-selector.ts';
import type { LabelSelector, LabelSelectorObject } from '../selector/label-selector.ts';
import type { DeleteOptions, ListResult, WatchEvent } from '../storage/storage.ts';

export interface CallOptions {
  /** Reason of the caller; recorded with the change. */
  readonly reason?: string;
  /** Address of the review in which the caller approved; recorded with the approval. */
  readonly evidence?: string;
  /** Id of that review on its host; recorded with the approval. */
  readonly review?: string;
  /** See `RequestContext.together`. Only storages in this process use it. */
  readonly together?: GroupMember;
  readonly signal?: AbortSignal;
}

export interface SelectOptions {
  /** All namespaces if absent. */
  readonly namespace?: string;
  /** `app=web,tier in (a,b)`, or an object with matchLabels and matchExpressions. */
  readonly labelSelector?: string | LabelSelectorObject | LabelSelector;
  /** `spec.repository=blueprints`. */
  readonly fieldSelector?: string | FieldSelector;
}

export interface WatchCallOptions extends SelectOptions {
  readonly resourceVersion: string;
  readonly signal: AbortSignal;
}

/** Reads one sub-resource, or writes to it; a write ignores everything outside of the sub-resource. */
export interface SubResourceClient {
  /** Reads a sub-resource of an object, without checking its form. Unsupported if there is no such sub-resource. */
  get(
    kind: Kind,
    key: ObjectKey,
    parameters?: Readonly<Record<string, string>>,
    options?: CallOptions,
  ): Promise<unknown>;
  update<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>>;
  /** `patch` is a merge patch of the whole object, for instance `{ status: { … } }`. See Client.patch. */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: CallOptions,
  ): Promise<Stored<T>>;
}

/**
 * Reads and writes objects of any kind, for controllers, the CLI and the server. The actor and the face are
 * part of the client, so everything it does is recorded under that name.
 *
 * - A key of a namespaced kind without a namespace means the namespace `default`.
 * - Written objects are validated and defaulted first (InvalidInput with InvalidObjectDetails).
 * - Returned objects are deeply frozen: to change one, write a copy.
 * - Errors are those of `Storage`.
 */
export interface Client {
  readonly actor: Actor;
  readonly face: EntryPoint;

  get<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey, options?: CallOptions): Promise<Stored<T>>;
  /** Like get, with undefined in place of NotFound. */
  find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: CallOptions,
  ): Promise<Stored<T> | undefined>;
  list<T extends KubernetesObject>(kind: Kind<T>, options?: SelectOptions & CallOptions): Promise<ListResult<T>>;
  watch<T extends KubernetesObject>(kind: Kind<T>, options: WatchCallOptions): AsyncIterable<WatchEvent<T>>;

  create<T extends KubernetesObject, Input>(
    kind: Kind<T, Input>,
    object: NoInfer<Input>,
    options?: CallOptions,
  ): Promise<Stored<T>>;
  /** Replaces an object, its status excepted. With the resourceVersion that was read, a lost race is a Conflict. */
  update<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>>;
  /**
   * Reads, merges (RFC 7386) and updates. Without `metadata.resourceVersion` in the patch a lost race is tried again,
   * with it the race is a Conflict.
   */
  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: CallOptions,
  ): Promise<Stored<T>>;
  /** Replaces only the status. */
  updateStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>>;
  subResource(name: string): SubResourceClient;
  delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: DeleteOptions & CallOptions,
  ): Promise<Stored<T>>;

  /** The same objects for another actor; the face stays if none is given. */
  as(actor: Actor, face?: EntryPoint): Client;
}
