import type { ApiServerOptions, ServerLimits } from './api-server-options.ts';
import type { User } from './authentication/user.ts';
import { authenticate } from './filters/authenticate.ts';
import { authorize } from './filters/authorize.ts';
import type { Filter } from './filters/filter.ts';
import { impersonate } from './filters/impersonate.ts';
import { countToUser, limitOpenRequests } from './filters/limit-open-requests.ts';
import { limitTime } from './filters/limit-time.ts';
import { parseUrl } from './filters/parse-url.ts';
import { readRequestBody } from './filters/read-request-body.ts';
import { recordRequest } from './filters/record-request.ts';
import { returnFailure } from './filters/return-failure.ts';
import { selectHandler } from './filters/select-handler.ts';
import { servePublicPaths } from './filters/serve-public-paths.ts';
import { waitForSlot } from './filters/wait-for-slot.ts';
import type { Services } from './handlers/handler.ts';
import type { InFlight } from './limits/in-flight.ts';
import type { OpenRequests } from './limits/open-requests.ts';

export interface FilterChainOptions {
  readonly options: ApiServerOptions;
  readonly limits: ServerLimits;
  readonly openRequests: OpenRequests;
  readonly inFlight: InFlight;
  readonly services: Services;
}

/**
 * All filters of a request, in their order. What a filter costs grows along the list, and so does what a client has proven by then: only a
 * request that its user may make holds a body, and only one whose body is there takes a slot. The handler of the verb runs last; it calls
 * admission between reading the stored object and writing the new one.
 */
export function filterChain({ options, limits, openRequests, inFlight, services }: FilterChainOptions): Filter[] {
  const { authenticator, authorizer, clock, hasPriority = isServiceAccount, onRequest } = options;
  const { webhooks, publicPaths = [], paths = [], reviews = [] } = options;
  return [
    // Every outcome is recorded, for metrics and the audit log.
    recordRequest(clock, onRequest),
    // Every failure is a Status.
    returnFailure(services.reportFailure),
    // Everything below ends within the time of a request.
    limitTime(clock, limits.requestTimeoutMs),
    // What is requested?
    parseUrl,
    // Webhooks and health checks need no user.
    servePublicPaths({ webhooks, publicPaths }),
    // Who sent it? From here on the request counts to its sender: each part of an impersonation is a decision of its own.
    authenticate(authenticator),
    limitOpenRequests(openRequests),
    // As whom is it judged? From here on it counts to that user.
    impersonate(authorizer),
    countToUser(openRequests),
    // May the user do this, and what serves it? Before the body: a request that is refused holds no memory.
    authorize(authorizer),
    selectHandler({ paths, reviews, services }),
    // The body, before a slot: a client that sends slowly keeps none from others.
    readRequestBody(clock, { maxBytes: limits.maxBodyBytes, timeoutMs: limits.bodyTimeoutMs }),
    // Slots are shared fairly between users, and those for controllers and for people are separate.
    waitForSlot(inFlight, hasPriority),
  ];
}

/** Controllers are service accounts. */
function isServiceAccount(sender: User): boolean {
  return sender.name.startsWith('system:serviceaccount:');
}
