import type { Clock } from '../../foundation/time/clock.ts';
import { type RetryReviewOptions, retryReview } from '../authentication/retry-review.ts';
import { ReviewCache } from '../authentication/review-cache.ts';
import { MASTERS_GROUP } from '../authentication/user.ts';
import type { AuthorizationDecision, Authorizer, RequestAttributes } from './authorizer.ts';
import { isMaster } from './rbac-authorizer.ts';

/**
 * Has a cluster review what a user may do (`authorization.k8s.io/v1 SubjectAccessReview`). `reviewAccess` rejects with a SluiceError if the
 * cluster does not decide, and ends when `signal` aborts.
 */
export interface AccessReviewer {
  reviewAccess(attributes: RequestAttributes, signal: AbortSignal): Promise<AuthorizationDecision>;
}

export interface AccessReviewAuthorizerOptions extends Omit<RetryReviewOptions, 'signal'> {
  readonly reviewer: AccessReviewer;
  readonly clock: Clock;
  /** See ReviewCacheOptions. */
  readonly maxEntries?: number;
  readonly maxRunning?: number;
}

/** Those of `DelegatingAuthorizationOptions`: short enough that a change of RBAC counts soon, long enough for a storm of requests. */
const ALLOWED_MS = 10_000;
const DENIED_MS = 10_000;
/** The health checks, which a kubelet reads without credentials. */
const ALLOWED_PATHS: readonly string[] = ['/healthz', '/livez', '/readyz'];

/**
 * Decides as the authorizers of a cluster do, which reviews each kind of request once in 10 seconds: a right that is granted or revoked counts
 * after at most that time. Members of `system:masters` may do everything, as in the cluster itself.
 */
export class AccessReviewAuthorizer implements Authorizer {
  readonly #options: AccessReviewAuthorizerOptions;
  readonly #cache: ReviewCache<AuthorizationDecision>;

  constructor(options: AccessReviewAuthorizerOptions) {
    const lifetimeMs = ({ allowed }: AuthorizationDecision) => (allowed ? ALLOWED_MS : DENIED_MS);
    const { maxEntries, maxRunning } = options;
    this.#options = options;
    this.#cache = new ReviewCache({ clock: options.clock, lifetimeMs, maxEntries, maxRunning });
  }

  async authorize(attributes: RequestAttributes, signal?: AbortSignal): Promise<AuthorizationDecision> {
    const { user, isResource, path } = attributes;
    if (isMaster(user)) return { allowed: true, reason: `member of the group ${MASTERS_GROUP}` };
    if (!isResource && ALLOWED_PATHS.includes(path)) return { allowed: true, reason: '' };
    const { reviewer, ...retries } = this.#options;
    const review = (end: AbortSignal) =>
      retryReview((attempt) => reviewer.reviewAccess(attributes, attempt), { ...retries, signal: end });
    return this.#cache.get(questionOf(attributes), review, signal);
  }
}

/** Equal for requests that a cluster cannot distinguish. */
function questionOf({ user, isResource, path, ...attributes }: RequestAttributes): string {
  const { verb, group, version, resource, subResource, namespace, name, selectors } = attributes;
  const subject = [user.name, user.uid ?? '', user.groups, Object.entries(user.extra ?? {})];
  const place = isResource ? [group, version, resource, subResource, namespace, name, selectors] : [path];
  return JSON.stringify([subject, verb, place]);
}
