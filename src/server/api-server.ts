import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { KeyedMutex } from '../foundation/concurrency/mutex.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import { type ApiServerOptions, DEFAULT_LIMITS, type ServerLimits } from './api-server-options.ts';
import { filterChain } from './filter-chain.ts';
import { composeFilters, type Responder } from './filters/filter.ts';
import { type ApiResponse, prettyResponse, type StreamedResponse, sendResponse } from './http/answer.ts';
import { isOn } from './http/request-path.ts';
import { InFlight, type Lane } from './limits/in-flight.ts';
import { OpenRequests } from './limits/open-requests.ts';
import type { ServerLoad } from './metrics/request-metrics.ts';
import { Presenter } from './presentation/presenter.ts';
import { ApiRequest } from './request/api-request.ts';
import { failureReporter } from './request/report-failure.ts';
import { ServedResources } from './request/served-resources.ts';
import { WatchFrames } from './watch/watch-frames.ts';
import { WatchStreams } from './watch/watch-streams.ts';

/** The Kubernetes API over the kinds of a registry. What happens to a request, and in which order, is in `filter-chain.ts`. */
export class ApiServer {
  readonly #options: ApiServerOptions;
  readonly #limits: ServerLimits;
  readonly #inFlight: InFlight;
  readonly #openRequests: OpenRequests;
  readonly #watches: WatchStreams;
  readonly #respond: Responder;

  constructor(options: ApiServerOptions) {
    const { clock, registry, authorizer, onError, random = Math.random } = options;
    const { admit = async () => undefined, decodeProtobuf = refuseProtobuf } = options;
    const limits = mergeLimits(options.limits);
    const { maxWatches, maxWatchesOfUser } = limits;
    this.#options = options;
    this.#limits = limits;
    this.#inFlight = new InFlight(limits.inFlight, clock);
    this.#openRequests = new OpenRequests(limits.openRequests);
    this.#watches = new WatchStreams({ clock, random, maxWatches, maxWatchesOfUser });
    const presenter = new Presenter(clock);
    const services = {
      ...{ clock, presenter, authorizer, admit, decodeProtobuf, retries: new KeyedMutex() },
      resources: new ServedResources(registry),
      watches: this.#watches,
      frames: new WatchFrames(presenter),
      reportFailure: failureReporter(onError),
    };
    const [inFlight, openRequests] = [this.#inFlight, this.#openRequests];
    const filters = filterChain({ options, limits, openRequests, inFlight, services });
    this.#respond = composeFilters(filters, (request) => request.handler());
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

  /** Ends all watches; other requests are served as before. */
  endWatches(): void {
    this.#watches.stop();
  }

  /** Serves one request. Never rejects. */
  async handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clock, onError } = this.#options;
    const request = new ApiRequest(incoming, response, randomUUID(), clock.now());
    response.once('close', () => {
      if (!response.writableFinished) request.aborted.abort();
    });
    try {
      await this.#send(request, await this.#respond(request));
    } catch (error) {
      onError(error, `answering request ${request.id}`);
      response.destroy();
    }
  }

  async #send(
    { incoming, response, found, id, warnings }: ApiRequest,
    answer: ApiResponse | StreamedResponse,
  ): Promise<void> {
    if (response.destroyed) return;
    response.setHeader('Audit-Id', id);
    response.setHeader('Cache-Control', 'no-cache, private');
    response.setHeader('X-Content-Type-Options', 'nosniff');
    if (warnings.length > 0) response.setHeader('Warning', warnings);
    if ('stream' in answer) return answer.stream(response);
    const isPretty = found.query !== undefined && isOn(found.query, 'pretty');
    const { discardTimeoutMs } = this.#limits;
    await sendResponse(incoming, response, isPretty ? prettyResponse(answer) : answer, { discardTimeoutMs });
  }
}

function mergeLimits(limits: ApiServerOptions['limits']): ServerLimits {
  const { inFlight, openRequests } = DEFAULT_LIMITS;
  return {
    ...{ ...DEFAULT_LIMITS, ...limits },
    inFlight: { ...inFlight, ...limits?.inFlight },
    openRequests: { ...openRequests, ...limits?.openRequests },
  };
}

function refuseProtobuf(): never {
  throw new SluiceError('UnsupportedMediaType', 'bodies in protobuf are not read here; send JSON');
}
