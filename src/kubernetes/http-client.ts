import { retryConflicts } from '../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, messageOf, SluiceError, unlessMissing } from '../foundation/sluice-error.ts';
import type { Clock } from '../foundation/time/clock.ts';
import type {
  CallOptions,
  Client,
  SelectOptions,
  SubResourceClient,
  WatchCallOptions,
} from '../resource/client/client.ts';
import {
  DEFAULT_NAMESPACE,
  type KubernetesObject,
  keyOf,
  type ObjectKey,
  type ObjectMeta,
  type Stored,
} from '../resource/object/object.ts';
import type { Actor, EntryPoint } from '../resource/object/request-context.ts';
import type { MergePatch } from '../resource/patch/merge-patch.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type {
  AppliedConfiguration,
  ApplyOptions,
  DeleteOptions,
  ListResult,
  WatchEvent,
} from '../resource/storage/storage.ts';
import { QUIET_WATCH_MS } from '../resource/watch/quiet-watch.ts';
import type { Call, Connection, HttpResponse, Method } from './connection/connection.ts';
import { impersonationHeaders, type RequestHeaders, reasonHeaders } from './connection/request-headers.ts';
import { isUnknownAddress } from './connection/status-error.ts';
import { type ListLimits, MAX_PAGE_ITEMS, readList, readPage } from './read-list.ts';
import { readObject } from './read-object.ts';
import { collectionPath, objectPath, versionPath } from './resource-path.ts';
import { selectionQuery, withQuery } from './selection-query.ts';
import { watchStream } from './watch-stream.ts';

const MAX_EVENT_BYTES = 64 * 1024 * 1024;
const MERGE_PATCH = 'application/merge-patch+json';
/** Kubernetes reads the body as YAML, of which JSON is a part. */
const APPLY_PATCH = 'application/apply-patch+yaml';

export interface HttpClientOptions {
  readonly connection: Connection;
  readonly face: EntryPoint;
  /** The user to impersonate, if not the user of the kubeconfig, who needs the right to impersonate. */
  readonly impersonate?: Actor | undefined;
  /** See `WatchStreamOptions`. Default `QUIET_WATCH_MS`. */
  readonly silenceLimit?: number;
  /** See `ListLimits`. Default: what fits into memory. */
  readonly listLimits?: ListLimits;
  /** The largest event of a watch that is read. Bytes. Default 64 MiB. */
  readonly eventBytes?: number;
}

/** Options of a call that only a server over HTTP has. */
export interface HttpCallOptions extends CallOptions {
  /** The server validates a write and returns its result without storing it. */
  readonly dryRun?: boolean | undefined;
  /** Receives the warnings of the server about this call, instead of the connection's `onWarning`. */
  readonly onWarning?: ((text: string) => void) | undefined;
}

export interface HttpWatchOptions extends WatchCallOptions {
  /** See `WatchStreamOptions`. Default: that of the client. */
  readonly silenceLimit?: number | undefined;
}

/** A part of a list. */
export interface PageOptions {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
}

/** The result of `raw`. */
export type RawResponse = HttpResponse;

/**
 * The client of any Kubernetes API server. It differs from the client of a registry in the same process:
 *
 * - The server validates and defaults objects; it may have more fields and other rules than Sluice, so nothing is
 *   parsed and pruned here. An update without a resourceVersion is refused by many servers.
 * - Objects keep all the fields that the server sent; see `readObject`. Write back a changed copy of an object that was read.
 * - `as` impersonates another user, for which the user of the connection needs the right.
 * - A watch ends without an error when the server ends it, usually after 5 to 10 minutes. Watch again from the last
 *   received version.
 * - The server applies a patch as one step, and retries it after concurrent writes.
 * - Unsupported means that the server does not serve the kind at all. For other errors see `Connection`.
 */
export class HttpClient implements Client {
  readonly actor: Actor;
  readonly face: EntryPoint;
  readonly #options: HttpClientOptions;
  readonly #connection: Connection;
  readonly #headers: RequestHeaders;

  constructor(options: HttpClientOptions) {
    const { connection, face } = options;
    const impersonate = options.impersonate ?? connection.access.impersonate;
    this.actor = impersonate ?? { name: connection.access.user };
    this.face = face;
    this.#options = options;
    this.#connection = connection;
    this.#headers = impersonate === undefined ? {} : impersonationHeaders(impersonate);
  }

  /** The clock of the connection. */
  get clock(): Clock {
    return this.#connection.clock;
  }

  as(actor: Actor, face: EntryPoint = this.face): HttpClient {
    return new HttpClient({ ...this.#options, impersonate: actor, face });
  }

  async get<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey, options?: HttpCallOptions): Promise<Stored<T>> {
    return this.#object(kind, { method: 'GET', path: objectPath(kind, key) }, options);
  }

  find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: HttpCallOptions,
  ): Promise<Stored<T> | undefined> {
    return unlessMissing(this.get(kind, key, options));
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: SelectOptions & HttpCallOptions = {},
  ): Promise<ListResult<T>> {
    const path = collectionPath(kind, options.namespace);
    const selection = selectionQuery(options);
    return readList(
      kind,
      (page, isPage) =>
        this.#json(kind, { method: 'GET', path: withQuery(path, { ...selection, ...page }), isPage }, options),
      this.#options.listLimits,
    );
  }

  /**
   * One page of a list, as the server returns it: sorted by the keys of its database, which is by namespace and name unless one namespace is
   * the start of another. Expired if `continue` is too old.
   */
  async listPage<T extends KubernetesObject>(
    kind: Kind<T>,
    options: SelectOptions & PageOptions & HttpCallOptions,
  ): Promise<ListResult<T>> {
    const { limit = 0, continue: token } = options;
    // A server may return fewer items than requested anyway.
    const page = { limit: limit > 0 ? String(Math.min(limit, MAX_PAGE_ITEMS)) : undefined, continue: token };
    const path = withQuery(collectionPath(kind, options.namespace), { ...selectionQuery(options), ...page });
    return await readPage(kind, await this.#json(kind, { method: 'GET', path }, options));
  }

  watch<T extends KubernetesObject>(kind: Kind<T>, options: HttpWatchOptions): AsyncIterable<WatchEvent<T>> {
    const { silenceLimit = this.#options.silenceLimit ?? QUIET_WATCH_MS } = options;
    const path = withQuery(collectionPath(kind, options.namespace), {
      ...selectionQuery(options),
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: options.resourceVersion,
      // With jitter, so that not all watches of all clients restart at the same time.
      timeoutSeconds: String(300 + Math.floor(300 * this.#connection.random())),
    });
    const events = watchStream({
      connection: this.#connection,
      kind,
      path,
      headers: this.#headers,
      signal: options.signal,
      silenceLimit,
      eventBytes: this.#options.eventBytes ?? MAX_EVENT_BYTES,
    });
    return this.#explained(kind, events);
  }

  async create<T extends KubernetesObject, Input>(
    kind: Kind<T, Input>,
    object: NoInfer<Input>,
    options?: HttpCallOptions,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, object as { readonly metadata: ObjectMeta });
    const path = collectionPath(kind, complete.metadata.namespace);
    return this.#object<T>(kind, { method: 'POST', path, value: complete }, options);
  }

  update<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: HttpCallOptions): Promise<Stored<T>> {
    return this.#update(kind, object, undefined, options);
  }

  updateStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: HttpCallOptions): Promise<Stored<T>> {
    return this.#update(kind, object, 'status', options);
  }

  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: HttpCallOptions,
  ): Promise<Stored<T>> {
    return this.#patch(kind, key, patch, undefined, options);
  }

  /** Server-side apply, which the server executes: creates the object, or changes the fields that the manager applies. */
  apply<T extends KubernetesObject>(
    kind: Kind<T>,
    configuration: AppliedConfiguration,
    { manager, force = false, subResource, ...options }: ApplyOptions & HttpCallOptions,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, configuration);
    const path = withQuery(objectPath(kind, keyOf(complete), subResource), {
      fieldManager: manager,
      force: force ? 'true' : undefined,
    });
    return this.#object(kind, { method: 'PATCH', path, contentType: APPLY_PATCH, value: complete }, options);
  }

  subResource(name: string): SubResourceClient {
    return {
      get: (kind, key, parameters = {}, options) =>
        this.#json(kind, { method: 'GET', path: withQuery(objectPath(kind, key, name), parameters) }, options),
      update: (kind, object, options) => this.#update(kind, object, name, options),
      patch: (kind, key, patch, options) => this.#patch(kind, key, patch, name, options),
    };
  }

  async delete<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options: DeleteOptions & HttpCallOptions = {},
  ): Promise<Stored<T>> {
    const { propagationPolicy, uid, resourceVersion } = options;
    // Many servers return a Status instead of the object that the caller expects.
    const last = await this.get(kind, key, options);
    const value = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy,
      preconditions: { uid, resourceVersion },
    };
    const answer = await this.#json(kind, { method: 'DELETE', path: objectPath(kind, key), value }, options);
    return 'kind' in answer && answer.kind === 'Status' ? last : readObject(kind, answer);
  }

  /**
   * Requests a path other than that of an object, such as `/version`, `/metrics` or `/apis?limit=1`, and returns the response as text.
   * `body` is sent as JSON. Errors as of every call.
   */
  async raw(
    method: Method,
    path: string,
    body?: string,
    options: CallOptions & { readonly accept?: string } = {},
  ): Promise<RawResponse> {
    if (!/^\/[\x21-\x7e]*$/.test(path))
      throw new SluiceError('InvalidInput', `a path begins with "/" and has no spaces, not ${JSON.stringify(path)}`);
    return this.#connection.call({
      method,
      path,
      accept: options.accept ?? '*/*',
      headers: { ...this.#headers, ...reasonHeaders(options.reason) },
      signal: options.signal,
      ...(body === undefined ? {} : { body }),
    });
  }

  async #update<T extends KubernetesObject>(
    kind: Kind<T>,
    object: T,
    subResource: string | undefined,
    options: HttpCallOptions | undefined,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, object);
    const path = objectPath(kind, keyOf(complete), subResource);
    return this.#object(kind, { method: 'PUT', path, value: complete }, options);
  }

  async #patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    subResource: string | undefined,
    options: HttpCallOptions | undefined,
  ): Promise<Stored<T>> {
    const path = objectPath(kind, key, subResource);
    const metadata = (patch.metadata ?? {}) as Partial<Stored['metadata']>;
    const { name = key.name, namespace = key.namespace } = metadata;
    if (
      name !== key.name ||
      (kind.namespaced && (namespace || DEFAULT_NAMESPACE) !== (key.namespace || DEFAULT_NAMESPACE))
    )
      throw new SluiceError('InvalidInput', 'a patch cannot change name or namespace');
    const attempt = () =>
      this.#object(kind, { method: 'PATCH', path, contentType: MERGE_PATCH, value: patch }, options);
    return 'resourceVersion' in metadata ? attempt() : retryConflicts(attempt, { signal: options?.signal });
  }

  async #object<T extends KubernetesObject>(
    kind: Kind<T>,
    request: ObjectRequest,
    options: HttpCallOptions | undefined,
  ): Promise<Stored<T>> {
    const response = await this.#json(kind, request, options);
    return readObject(kind, options?.dryRun === true ? withVersion(response) : response);
  }

  /** Calls the server and returns the response as an object. */
  async #json(kind: Kind, request: ObjectRequest, options: HttpCallOptions = {}): Promise<object> {
    const { value, ...call } = request;
    const { signal, onWarning, reason, dryRun } = options;
    const headers = { ...this.#headers, ...reasonHeaders(reason) };
    const path = dryRun === true && call.method !== 'GET' ? withQuery(call.path, { dryRun: 'All' }) : call.path;
    const body = value === undefined ? {} : { body: JSON.stringify(value) };
    try {
      return parseJson(
        await this.#connection.call({ ...call, ...body, path, headers, signal, onWarning }),
        this.#connection,
      );
    } catch (error) {
      throw await this.#explain(kind, error);
    }
  }

  async *#explained<T>(kind: Kind, events: AsyncIterable<T>): AsyncGenerator<T> {
    try {
      yield* events;
    } catch (error) {
      throw await this.#explain(kind, error);
    }
  }

  /**
   * Distinguishes a kind that the server does not serve from a missing object. A server authorizes first, so after a
   * refusal this checks whether the kind is served at all.
   */
  async #explain(kind: Kind, error: unknown): Promise<unknown> {
    const unknown = isUnknownAddress(error) || (isSluiceError(error, 'Refused') && (await this.#lacks(kind)));
    if (!unknown) return error;
    const name = kind.group === '' ? kind.plural : `${kind.plural}.${kind.group}`;
    const { server, source } = this.#connection.access;
    return new SluiceError(
      'Unsupported',
      `${server} (${source}) does not serve ${name} in version ${kind.version}, or not this operation; use the kubeconfig of a server that does: ${messageOf(error)}`,
      { cause: error, details: { kind: name } },
    );
  }

  async #lacks(kind: Kind): Promise<boolean> {
    try {
      await this.#connection.call({ method: 'GET', path: versionPath(kind), headers: this.#headers });
      return false;
    } catch (error) {
      // Other errors do not replace the first error, which the caller receives.
      return isSluiceError(error, 'NotFound');
    }
  }
}

/** The object that a dry run returns. It has no version where nothing is stored. */
function withVersion(response: object): object {
  const { metadata } = response as { readonly metadata?: object };
  return { ...response, metadata: { resourceVersion: '', ...metadata } };
}

/** A request about the objects of a kind; `value` is sent as JSON. */
interface ObjectRequest extends Omit<Call, 'body' | 'headers' | 'signal' | 'onWarning'> {
  readonly value?: object;
}

/** The object with the namespace that its kind requires, and with its apiVersion and kind. */
function withScope<T extends { readonly metadata: ObjectMeta }>(kind: Kind, object: T): T {
  const { metadata } = object;
  const named = { ...object, apiVersion: kind.apiVersion, kind: kind.kind };
  return kind.namespaced
    ? { ...named, metadata: { ...metadata, namespace: metadata.namespace || DEFAULT_NAMESPACE } }
    : named;
}

function parseJson({ text, contentType }: HttpResponse, { access }: Connection): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    // Reported below without the text, which may be anything, such as a login page.
  }
  if (typeof value === 'object' && value !== null) return value;
  const form = contentType === '' ? 'no JSON' : `${contentType.slice(0, 100)} that is not a JSON object`;
  throw new SluiceError(
    'Unavailable',
    `${access.server} responded with ${form}: is it a Kubernetes API server? (${access.source})`,
  );
}
