import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { isSluiceError, messageOf, SluiceError } from '../foundation/sluice-error.ts';
import { type ApiServerOptions, DEFAULT_LIMITS, type ServerLimits } from './api-server-options.ts';
import type { User } from './authentication/user.ts';
import { effectiveUser } from './authorization/impersonation.ts';
import { requireAllowed } from './authorization/require-allowed.ts';
import { handlerOf, methodNotAllowed, unknownResource } from './dispatch.ts';
import { Exchange, type PathHandler } from './exchange/exchange.ts';
import { ServedResources } from './exchange/served-resources.ts';
import { maxBodyValues } from './handlers/object-input.ts';
import type { Services } from './handlers/resource-call.ts';
import { type Answer, jsonAnswer, prettyAnswer, type StreamedAnswer, sendAnswer } from './http/answer.ts';
import type { DecodedText } from './http/json-text.ts';
import { decodeBody, EMPTY_BODY, type RequestBody, readBody } from './http/request-body.ts';
import { isOn, parseRequestPath } from './http/request-path.ts';
import { failureStatus, type Status } from './http/status.ts';
import { InFlight, type Lane, laneOf } from './limits/in-flight.ts';
import { type OpenRequest, OpenRequests } from './limits/open-requests.ts';
import type { ServerLoad } from './metrics/request-metrics.ts';
import { Presenter } from './presentation/presenter.ts';
import { resourceCall } from './resource-call-of.ts';
import type { VirtualResource } from './reviews/virtual-resource.ts';
import { WatchFrames } from './watch/watch-frames.ts';
import { WatchStreams } from './watch/watch-streams.ts';

const METHODS: readonly string[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'];

const MAY_HAVE_BODY: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** The Kubernetes API over the kinds of a registry: each request goes through the steps below, in this order. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #limits: ServerLimits;
  readonly #inFlight: InFlight;
  readonly #openRequests: OpenRequests;
  readonly #watches: WatchStreams;
  readonly #resources: ServedResources;
  readonly #services: Omit<Services, 'failure'>;

  constructor(options: ApiServerOptions) {
    const { clock, registry, random = Math.random, admit = async () => undefined } = options;
    this.#options = options;
    const { inFlight, openRequests } = DEFAULT_LIMITS;
    this.#limits = {
      ...{ ...DEFAULT_LIMITS, ...options.limits },
      inFlight: { ...inFlight, ...options.limits?.inFlight },
      openRequests: { ...openRequests, ...options.limits?.openRequests },
    };
    this.#inFlight = new InFlight(this.#limits.inFlight, clock);
    this.#openRequests = new OpenRequests(this.#limits.openRequests);
    const { watches: maxWatches, watchesOfUser: maxWatchesOfUser } = this.#limits;
    this.#watches = new WatchStreams({ clock, random, maxWatches, maxWatchesOfUser });
    this.#resources = new ServedResources(registry);
    const presenter = new Presenter(clock);
    const [resources, watches, frames] = [this.#resources, this.#watches, new WatchFrames(presenter)];
    this.#services = { clock, resources, presenter, watches, frames, admit };
  }

  /** Requests and watches that are open now. */
  get load(): ServerLoad {
    const counts = (count: (lane: Lane) => number) => ({
      ...{ mutating: count('mutating'), reading: count('reading'), priority: count('priority') },
    });
    return {
      ...counts((lane) => this.#inFlight.running(lane)),
      waiting: counts((lane) => this.#inFlight.waiting(lane)),
      bodyBytes: this.#openRequests.bytes,
      watches: this.#watches.size,
    };
  }

  /** Ends all watches; other requests are answered as ever. */
  endWatches(): void {
    this.#watches.stop();
  }

  /** Answers one request. Never rejects. */
  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const exchange = new Exchange(request, response, randomUUID(), this.#options.clock.now());
    response.once('close', () => {
      if (!response.writableFinished) exchange.aborted.abort();
    });
    const { answer, status } = await this.#inTime(exchange, this.#answer(exchange)).then(
      (given) => ({ answer: given, status: undefined }),
      (error: unknown) => this.#failed(exchange, error),
    );
    try {
      this.#record(exchange, 'stream' in answer ? 200 : answer.status, status?.reason ?? '');
      await this.#send(exchange, answer);
    } catch (error) {
      this.#options.onError(error, `answering request ${exchange.id}`);
      response.destroy();
    }
  }

  async #answer(exchange: Exchange): Promise<Answer | StreamedAnswer> {
    const { request } = exchange;
    const method = request.method ?? '';
    if (!METHODS.includes(method)) throw methodNotAllowed(METHODS);
    const { info, query } = parseRequestPath(method, request.url ?? '');
    exchange.info = info;
    exchange.query = query;
    const open = info.isResource ? undefined : await this.#openPath(exchange);
    if (open !== undefined) return open;
    const user = await this.#identify(exchange);
    const openRequest = this.#openRequests.open(user.name);
    try {
      const serve = await this.#chooseHandler(exchange, user);
      // A client that sends slowly must not keep others from a slot.
      const body = MAY_HAVE_BODY.has(method) ? await this.#readBody(exchange, openRequest) : EMPTY_BODY;
      const lane = laneOf(info.verb, this.#hasPriority(exchange));
      const leave = await this.#inFlight.enter(lane, user.name, exchange.aborted.signal);
      try {
        return await serve(body);
      } finally {
        leave();
      }
    } finally {
      openRequest.close();
    }
  }

  async #identify(exchange: Exchange): Promise<User> {
    const { authenticator, authorizer } = this.#options;
    const sender = await authenticator.authenticate(exchange.request);
    if (sender === undefined) throw new SluiceError('Unauthenticated', 'Unauthorized');
    exchange.user = sender;
    const user = await effectiveUser(exchange.request, sender, authorizer);
    exchange.user = user;
    if (user !== sender) exchange.impersonator = sender;
    return user;
  }

  #readBody({ request }: Exchange, { hold }: OpenRequest): Promise<RequestBody> {
    const { bodyBytes: limit, bodyTimeout: timeoutMs } = this.#limits;
    return readBody(request, { limit, timeoutMs, hold, clock: this.#options.clock });
  }

  /** What answers a request, if its user may make it at all. */
  async #chooseHandler(
    exchange: Exchange,
    user: User,
  ): Promise<(body: RequestBody) => Promise<Answer | StreamedAnswer>> {
    const { info } = exchange;
    if (info === undefined) throw new Error('the request was not read yet');
    await requireAllowed(this.#options.authorizer, { ...info, user });
    if (!info.isResource) {
      return async () => {
        const found = await this.#atPath(exchange, this.#options.paths);
        if (found === undefined) throw unknownResource();
        return found;
      };
    }
    const review = this.#reviewOf(exchange);
    if (review !== undefined) return this.#review(exchange, review, user);
    exchange.resource = this.#resources.find(info);
    const handler = handlerOf(info, exchange.resource);
    const services = { ...this.#services, failure: (error: unknown) => this.#statusOf(exchange, error) };
    const { authorizer } = this.#options;
    const maxValues = exchange.resource && maxBodyValues(exchange.resource.kind);
    const decode = (body: RequestBody) => this.#decode(body, maxValues);
    return async (body) => handler(resourceCall(exchange, { authorizer, body, decode }), services);
  }

  async #openPath(exchange: Exchange): Promise<Answer | undefined> {
    const { info, query, request } = exchange;
    const received = await this.#options.webhooks?.({ path: info?.path ?? '', query, request });
    return received ?? this.#atPath(exchange, this.#options.publicPaths);
  }

  async #atPath(exchange: Exchange, handlers: readonly PathHandler[] = []): Promise<Answer | undefined> {
    const { info, query, request } = exchange;
    for (const handler of handlers) {
      const answer = await handler({ path: info?.path ?? '', query, request });
      if (answer === undefined) continue;
      if (info?.verb !== 'get' && info?.verb !== 'head') throw methodNotAllowed(['GET', 'HEAD']);
      return answer;
    }
    return undefined;
  }

  #reviewOf({ info }: Exchange): VirtualResource | undefined {
    return this.#options.reviews?.find(
      ({ group, version, resource }) =>
        group === info?.group && version === info.version && resource === info.resource && info.subResource === '',
    );
  }

  #review(exchange: Exchange, review: VirtualResource, user: User): (body: RequestBody) => Promise<Answer> {
    const { info } = exchange;
    exchange.review = true;
    if (info?.name !== '' || (info.namespace !== '') !== review.namespaced) throw unknownResource();
    if (info.verb !== 'create') throw methodNotAllowed(['POST']);
    return async (body) => jsonAnswer(201, await review.answer(user, this.#decode(body).value, info.namespace));
  }

  #decode(body: RequestBody, maxValues?: number): DecodedText {
    return decodeBody(body, this.#options.decodeProtobuf ?? refuseProtobuf, maxValues);
  }

  #hasPriority({ user, impersonator }: Exchange): boolean {
    const sender = impersonator ?? user;
    return sender !== undefined && (this.#options.hasPriority ?? isServiceAccount)(sender);
  }

  /** Whoever does not answer in time is answered for; what still runs is asked to stop. */
  #inTime<Result>(exchange: Exchange, work: Promise<Result>): Promise<Result> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      const cancel = clock.schedule(this.#limits.requestTimeout, () => {
        exchange.aborted.abort();
        reject(new SluiceError('Timeout', 'Timeout: request did not complete within the allotted timeout'));
      });
      work.then(resolve, reject).finally(cancel);
    });
  }

  #failed(exchange: Exchange, error: unknown): { answer: Answer; status: Status } {
    const status = this.#statusOf(exchange, error);
    const { retryAfterSeconds } = status.details ?? {};
    const allow = isSluiceError(error, 'Unsupported') ? (error.details as { allow?: string } | undefined)?.allow : '';
    const headers = {
      ...(retryAfterSeconds === undefined ? {} : { 'Retry-After': String(retryAfterSeconds) }),
      ...(typeof allow === 'string' && allow !== '' ? { Allow: allow } : {}),
    };
    return { answer: jsonAnswer(status.code, status, headers), status };
  }

  #statusOf({ id, info, name, resource, aborted, response }: Exchange, error: unknown): Status {
    const about = info?.isResource ? { ...info, name: info.name || name, kind: resource?.kind.kind } : undefined;
    const status = failureStatus(error, about, id);
    const gone = aborted.signal.aborted && response.destroyed;
    // A package that cannot be rendered has a status of Porch's, and is no failure of the server.
    const isOwn = status.code === 500 && !isSluiceError(error, 'RenderFailed');
    if (isOwn && !gone) this.#options.onError(withCause(error), `request ${id}`);
    return status;
  }

  #record(exchange: Exchange, code: number, reason: string): void {
    const { info, user, impersonator, startedAt, resource, review } = exchange;
    const nothing = { verb: '', group: '', version: '', resource: '', subResource: '', namespace: '', name: '' };
    const { path: _path, ...about } = info ?? { ...nothing, isResource: false, path: '' };
    this.#options.onRequest?.({
      ...about,
      time: new Date(startedAt).toISOString(),
      requestId: exchange.id,
      name: about.name || exchange.name,
      user: user?.name,
      groups: user?.groups ?? [],
      impersonator: impersonator?.name,
      served: resource !== undefined ? 'stored' : review ? 'review' : 'unknown',
      dryRun: exchange.dryRun,
      ...{ code, reason, milliseconds: this.#options.clock.now() - startedAt },
    });
  }

  async #send({ request, response, query, id, warnings }: Exchange, answer: Answer | StreamedAnswer): Promise<void> {
    if (response.destroyed) return;
    response.setHeader('Audit-Id', id);
    response.setHeader('Cache-Control', 'no-cache, private');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if (warnings.length > 0) response.setHeader('Warning', warnings);
    if ('stream' in answer) await answer.stream(response);
    else {
      const { discardTimeoutMs } = this.#limits;
      await sendAnswer(request, response, isOn(query, 'pretty') ? prettyAnswer(answer) : answer, { discardTimeoutMs });
    }
  }
}

/** What the log shows of an error. The message of an internal error is for the client; the cause is what an operator needs. */
function withCause(error: unknown): unknown {
  if (!isSluiceError(error, 'Internal') || error.cause === undefined) return error;
  return new Error(`${error.message}: ${messageOf(error.cause)}`, { cause: error });
}

function isServiceAccount(user: User): boolean {
  return user.name.startsWith('system:serviceaccount:');
}

function refuseProtobuf(): never {
  throw new SluiceError('UnsupportedMediaType', 'bodies in protobuf are not read here; send JSON');
}
