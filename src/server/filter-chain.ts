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
import { traceRequest } from './filters/trace-request.ts';
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
 * Returns all filters of a request, in their order. The cost of the filters grows along the list, and so do the checks that a request
 * has passed: only an authorised request may use memory for its body, and only a complete body takes a slot. The handler of the verb
 * runs last; it calls admission between reading the stored object and writing the new one.
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
    // Parse the requested URL.
    parseUrl,
    // Webhooks and health checks need no user.
    servePublicPaths({ webhooks, publicPaths }),
    // Authenticate the sender. From here on the request counts to its sender: each part of an impersonation is a separate
    // decision.
    authenticate(authenticator),
    // Every request of a known sender is a span, if tracing is on.
    traceRequest,
    limitOpenRequests(openRequests),
    // Apply impersonation. From here on the request counts to the effective user.
    impersonate(authorizer),
    countToUser(openRequests),
    // Authorise the user and select the handler. This is before the body, so that a refused request uses no memory for
    // it.
    authorize(authorizer),
    selectHandler({ paths, reviews, services }),
    // Read the body before a slot is taken: a client that sends slowly does not occupy a slot.
    readRequestBody(clock, { maxBytes: limits.maxBodyBytes, timeoutMs: limits.bodyTimeoutMs }),
    // Slots are shared fairly between users; controllers and other users have separate slots.
    waitForSlot(inFlight, hasPriority),
  ];
}

/** Controllers are service accounts. */
function isServiceAccount(sender: User): boolean {
  return sender.name.startsWith('system:serviceaccount:');
}
