import { retryConflicts } from '../foundation/concurrency/retry-conflicts.ts';
import { isSluiceError, messageOf, SluiceError, unlessMissing } from '../foundation/sluice-error.ts';
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
import type { Actor, Face } from '../resource/object/request-context.ts';
import type { MergePatch } from '../resource/patch/merge-patch.ts';
import type { Kind } from '../resource/schema/kind.ts';
import type { DeleteOptions, ListResult, WatchEvent } from '../resource/storage/storage.ts';
import type { Call, Connection, HttpResponse, Method } from './connection/connection.ts';
import { impersonationHeaders, type RequestHeaders, reasonHeaders } from './connection/request-headers.ts';
import { isUnknownAddress } from './connection/status-error.ts';
import { readList } from './read-list.ts';
import { readObject } from './read-object.ts';
import { collectionPath, objectPath, versionPath } from './resource-path.ts';
import { selectionQuery, withQuery } from './selection-query.ts';
import { watchStream } from './watch-stream.ts';

/** kube-apiserver sends a bookmark about once a minute. */
const SILENCE_LIMIT_MS = 90_000;
const MAX_EVENT_BYTES = 64 * 1024 * 1024;

export interface HttpClientOptions {
  readonly connection: Connection;
  readonly face: Face;
  /** The user to impersonate, if not the user of the kubeconfig, who needs the right to impersonate. */
  readonly impersonate?: Actor | undefined;
  /** See `WatchStreamOptions`. Default 90,000 ms. */
  readonly silenceLimit?: number;
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
 * - The server applies a patch as one step, and retries it by itself after concurrent writes.
 * - Unsupported means that the server does not serve the kind at all. For other errors see `Connection`.
 */
export class HttpClient implements Client {
  readonly actor: Actor;
  readonly face: Face;
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

  as(actor: Actor, face: Face = this.face): HttpClient {
    return new HttpClient({ ...this.#options, impersonate: actor, face });
  }

  async get<T extends KubernetesObject>(kind: Kind<T>, key: ObjectKey, options?: CallOptions): Promise<Stored<T>> {
    return this.#object(kind, 'GET', objectPath(kind, key), undefined, options);
  }

  find<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    options?: CallOptions,
  ): Promise<Stored<T> | undefined> {
    return unlessMissing(this.get(kind, key, options));
  }

  async list<T extends KubernetesObject>(
    kind: Kind<T>,
    options: SelectOptions & CallOptions = {},
  ): Promise<ListResult<T>> {
    const path = collectionPath(kind, options.namespace);
    const selection = selectionQuery(options);
    return readList(kind, (page) =>
      this.#json(kind, { method: 'GET', path: withQuery(path, { ...selection, ...page }) }, options),
    );
  }

  watch<T extends KubernetesObject>(kind: Kind<T>, options: WatchCallOptions): AsyncIterable<WatchEvent<T>> {
    const { silenceLimit = SILENCE_LIMIT_MS } = this.#options;
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
      eventBytes: MAX_EVENT_BYTES,
    });
    return this.#explained(kind, events);
  }

  async create<T extends KubernetesObject, Input>(
    kind: Kind<T, Input>,
    object: NoInfer<Input>,
    options?: CallOptions,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, object as { readonly metadata: ObjectMeta });
    return this.#object<T>(kind, 'POST', collectionPath(kind, complete.metadata.namespace), complete, options);
  }

  update<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>> {
    return this.#update(kind, object, undefined, options);
  }

  updateStatus<T extends KubernetesObject>(kind: Kind<T>, object: T, options?: CallOptions): Promise<Stored<T>> {
    return this.#update(kind, object, 'status', options);
  }

  patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    options?: CallOptions,
  ): Promise<Stored<T>> {
    return this.#patch(kind, key, patch, undefined, options);
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
    options: DeleteOptions & CallOptions = {},
  ): Promise<Stored<T>> {
    const { propagationPolicy, uid, resourceVersion } = options;
    // Many servers return a Status instead of the object that the caller expects.
    const last = await this.get(kind, key, options);
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      propagationPolicy,
      preconditions: { uid, resourceVersion },
    };
    const call = { method: 'DELETE', path: objectPath(kind, key), body: JSON.stringify(body) } as const;
    const answer = await this.#json(kind, call, options);
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
    options: CallOptions | undefined,
  ): Promise<Stored<T>> {
    const complete = withScope(kind, object);
    return this.#object(kind, 'PUT', objectPath(kind, keyOf(complete), subResource), complete, options);
  }

  async #patch<T extends KubernetesObject>(
    kind: Kind<T>,
    key: ObjectKey,
    patch: MergePatch,
    subResource: string | undefined,
    options: CallOptions | undefined,
  ): Promise<Stored<T>> {
    const path = objectPath(kind, key, subResource);
    const metadata = (patch.metadata ?? {}) as Partial<Stored['metadata']>;
    const { name = key.name, namespace = key.namespace } = metadata;
    if (
      name !== key.name ||
      (kind.namespaced && (namespace || DEFAULT_NAMESPACE) !== (key.namespace || DEFAULT_NAMESPACE))
    )
      throw new SluiceError('InvalidInput', 'a patch cannot change name or namespace');
    const attempt = () => this.#object(kind, 'PATCH', path, patch, options);
    return 'resourceVersion' in metadata ? attempt() : retryConflicts(attempt, { signal: options?.signal });
  }

  async #object<T extends KubernetesObject>(
    kind: Kind<T>,
    method: Method,
    path: string,
    body: unknown,
    options: CallOptions | undefined,
  ): Promise<Stored<T>> {
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const call = { method, path, contentType, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    return readObject(kind, await this.#json(kind, call, options));
  }

  /** Calls the server and returns the response as an object. */
  async #json(kind: Kind, call: Call, options: CallOptions | undefined): Promise<object> {
    const headers = { ...this.#headers, ...reasonHeaders(options?.reason) };
    try {
      return parseJson(await this.#connection.call({ ...call, headers, signal: options?.signal }), this.#connection);
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
      { cause: error },
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
